#include "rank/report.h"

#include "record/beacon.h"

namespace stoker::rank {
namespace {

// Texts in messages are for people: longer ones say no more.
std::string cut(std::string_view text) { return std::string(text.substr(0, 1000)); }

void put(net::Message& message, const Whereabouts& where) {
  message.with("phase", cut(where.phase));
  if (where.epoch) message.with("epoch", *where.epoch);
  if (where.step) message.with("step", *where.step);
}

Whereabouts whereabouts(const net::Message& message) {
  return {std::string(message.text("phase")), message.integer("epoch"), message.integer("step")};
}

}  // namespace

std::string to_text(const Whereabouts& where) {
  if (!where.is_known()) return "";
  if (!where.epoch || !where.step) return format("phase {}", where.phase);
  return format("epoch {} step {}, phase {}", *where.epoch + 1, *where.step, where.phase);
}

Whereabouts read_whereabouts(const Path& file) {
  const auto seen = record::read_beacon(file);
  if (!seen.ok()) return {};
  return {std::string(to_text(seen->phase)), seen->epoch, static_cast<std::int64_t>(seen->step)};
}

net::Message to_message(const Beat& beat) {
  net::Message message{"beat", {}};
  message.with("stopped_s", beat.stopped_s).with("silent_s", beat.silent_s);
  message.with("has_beacon", std::int64_t{beat.has_beacon}).with("waits_for", cut(beat.waits_for));
  put(message, beat.where);
  return message;
}

Beat parse_beat(const net::Message& message) {
  return {message.number("stopped_s").value_or(0), message.number("silent_s").value_or(0),
          message.integer("has_beacon") == 1, whereabouts(message), cut(message.text("waits_for"))};
}

net::Message to_message(const Ended& ended) {
  net::Message message{"ended", {}};
  message.with("code", std::int64_t{ended.exit.code}).with("signal", std::int64_t{ended.exit.signal});
  message.with("start_error", cut(ended.start_error))
      .with("stopped_by_us", std::int64_t{ended.stopped_by_us});
  message.with("time", ended.time).with("ran_s", ended.ran_s).with("memory", cut(ended.memory));
  message.with("last_line", cut(ended.last_line)).with("left_behind", cut(ended.left_behind));
  message.with("log_complaint", cut(ended.log_complaint));
  put(message, ended.where);
  return message;
}

Ended parse_ended(const net::Message& message) {
  Ended ended;
  ended.exit = {static_cast<int>(message.integer("code").value_or(0) & 0xFF),
                static_cast<int>(message.integer("signal").value_or(0) & 0x7F)};
  ended.start_error = message.text("start_error");
  ended.stopped_by_us = message.integer("stopped_by_us") == 1;
  ended.time = message.number("time").value_or(0);
  ended.ran_s = message.number("ran_s").value_or(0);
  ended.where = whereabouts(message);
  ended.memory = message.text("memory");
  ended.last_line = message.text("last_line");
  ended.left_behind = message.text("left_behind");
  ended.log_complaint = message.text("log_complaint");
  return ended;
}

std::string reason(const Ended& ended) {
  if (!ended.start_error.empty()) return ended.start_error;
  return to_text(ended.exit) + (ended.memory.empty() ? "" : ", " + ended.memory);
}

}  // namespace stoker::rank
