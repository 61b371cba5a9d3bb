#include "rank/report.h"

#include "record/beacon.h"

namespace stoker::rank {
namespace {

// Bounds texts for users.
std::string cut(std::string_view text) { return std::string(text.substr(0, 1000)); }

void put(net::ControlMessage& message, const TrainingPosition& where) {
  message.with("phase", cut(where.phase));
  if (where.epoch) message.with("epoch", *where.epoch);
  if (where.step) message.with("step", *where.step);
}

TrainingPosition position_in(const net::ControlMessage& message) {
  return {std::string(message.text("phase")), message.integer("epoch"), message.integer("step")};
}

}  // namespace

std::string to_text(const TrainingPosition& where) {
  if (!where.is_known()) return "";
  if (!where.epoch || !where.step) return format("phase {}", where.phase);
  return format("epoch {} step {}, phase {}", *where.epoch + 1, *where.step, where.phase);
}

TrainingPosition read_position(const Path& file) {
  const auto seen = record::read_beacon(file);
  if (!seen.ok()) return {};
  return {std::string(to_text(seen->phase)), seen->epoch, static_cast<std::int64_t>(seen->step)};
}

net::ControlMessage to_message(const Heartbeat& heartbeat) {
  net::ControlMessage message{"heartbeat", {}};
  message.with("stopped_s", heartbeat.stopped_s).with("silent_s", heartbeat.silent_s);
  message.with("has_beacon", std::int64_t{heartbeat.has_beacon})
      .with("blocked_on", cut(heartbeat.blocked_on));
  put(message, heartbeat.where);
  return message;
}

Heartbeat parse_heartbeat(const net::ControlMessage& message) {
  return {message.number("stopped_s").value_or(0), message.number("silent_s").value_or(0),
          message.integer("has_beacon") == 1, position_in(message), cut(message.text("blocked_on"))};
}

net::ControlMessage to_message(const RankExit& ended) {
  net::ControlMessage message{"ended", {}};
  message.with("code", std::int64_t{ended.exit.code}).with("signal", std::int64_t{ended.exit.signal});
  message.with("start_error", cut(ended.start_error))
      .with("stopped_by_us", std::int64_t{ended.stopped_by_us});
  message.with("time", ended.time).with("ran_s", ended.ran_s).with("memory", cut(ended.memory));
  message.with("last_line", cut(ended.last_line)).with("left_behind", cut(ended.left_behind));
  message.with("log_error", cut(ended.log_error)).with("stack", cut(ended.stack));
  put(message, ended.where);
  return message;
}

RankExit parse_rank_exit(const net::ControlMessage& message) {
  RankExit ended;
  ended.exit = {static_cast<int>(message.integer("code").value_or(0) & 0xFF),
                static_cast<int>(message.integer("signal").value_or(0) & 0x7F)};
  ended.start_error = message.text("start_error");
  ended.stopped_by_us = message.integer("stopped_by_us") == 1;
  ended.time = message.number("time").value_or(0);
  ended.ran_s = message.number("ran_s").value_or(0);
  ended.where = position_in(message);
  ended.memory = message.text("memory");
  ended.last_line = message.text("last_line");
  ended.left_behind = message.text("left_behind");
  ended.log_error = message.text("log_error");
  ended.stack = message.text("stack");
  return ended;
}

std::string reason(const RankExit& ended) {
  if (!ended.start_error.empty()) return ended.start_error;
  return to_text(ended.exit) + (ended.memory.empty() ? "" : ", " + ended.memory);
}

}  // namespace stoker::rank
