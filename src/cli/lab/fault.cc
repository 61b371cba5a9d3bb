// `stoker lab fault [KIND TARGET]`: docs/commands/lab-fault.md
#include "lab/fault/fault.h"

#include <algorithm>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/lab/heal.h"
#include "cli/lab/lab_name.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

struct FaultOptions {
  std::string kind;
  std::string target;
  std::string lab = lab::Options{}.name;
  std::optional<std::int64_t> rank;
  std::string rate;
  std::optional<Duration> delay;
  std::string loss;
  std::optional<Duration> after;
};

std::string whom(const lab::fault::Entry& entry) {
  return entry.rank < 0 ? entry.target : format("{} rank {}", entry.target, entry.rank);
}

void print_kinds(Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const lab::fault::Kind& kind : lab::fault::kinds()) {
    rows.push_back({std::string(kind.name), std::string(kind.targets), std::string(kind.what)});
  }
  out.table({"FAULT", "OF", "WHAT HAPPENS"}, rows);
}

void print_in_force(const std::vector<lab::fault::Entry>& entries, double now, Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const lab::fault::Entry& entry : entries) {
    const auto age = std::chrono::duration_cast<Duration>(Seconds(std::max(0.0, now - entry.time)));
    rows.push_back({whom(entry), entry.kind, rounded_duration(age), entry.text});
  }
  out.table({"IN FORCE", "FAULT", "SINCE", "WHAT"}, rows);
}

ordered_json to_json(const lab::fault::Entry& entry) {
  return {{"kind", entry.kind},
          {"target", entry.target},
          {"rank", entry.rank < 0 ? ordered_json(nullptr) : ordered_json(entry.rank)},
          {"what", entry.text},
          {"time", entry.time}};
}

// What can be done is told without a lab too; what is in force needs one.
Status list(const FaultOptions& o, Output& out) {
  ordered_json kinds = ordered_json::array();
  for (const lab::fault::Kind& kind : lab::fault::kinds()) {
    kinds.push_back({{"kind", kind.name}, {"targets", kind.targets}, {"what", kind.what}});
  }
  print_kinds(out);
  ordered_json faults = ordered_json::array();
  const auto lab = lab::open(o.lab);
  if (!lab && (lab.error().code() != Code::not_found || o.lab != lab::Options{}.name)) return lab.error();
  if (lab) {
    OK_OR_RETURN(entries, lab::fault::in_force(*lab));
    for (const lab::fault::Entry& entry : entries) faults.push_back(to_json(entry));
    out.line("");
    if (entries.empty()) out.line("{}: no fault in force", o.lab);
    if (!entries.empty()) print_in_force(entries, unix_seconds(RealClock().wall()), out);
  }
  out.json(json_text(nlohmann::ordered_json{{"lab", o.lab}, {"kinds", kinds}, {"in_force", faults}}));
  return {};
}

Result<lab::fault::Request> request_of(const FaultOptions& o) {
  lab::fault::Request request{.kind = o.kind, .target = o.target};
  if (o.rank) {
    if (*o.rank < 0 || *o.rank > 1'000'000) {
      return invalid("lab fault: --rank {}: ranks are counted from 0", *o.rank);
    }
    request.rank = static_cast<int>(*o.rank);
  }
  if (!o.rate.empty()) {
    auto rate = lab::fault::parse_rate(o.rate);
    if (!rate) return std::move(rate).error().with_context("lab fault: --rate");
    request.slowness.bits_per_s = *rate;
  }
  if (!o.loss.empty()) {
    auto loss = lab::fault::parse_loss(o.loss);
    if (!loss) return std::move(loss).error().with_context("lab fault: --loss");
    request.slowness.loss = *loss;
  }
  request.slowness.delay = o.delay.value_or(Duration{});
  request.after = o.after.value_or(Duration{});
  const bool is_slow = !o.rate.empty() || !o.loss.empty() || o.delay;
  if (is_slow && o.kind != "slow")
    return invalid("lab fault {}: --rate, --delay and --loss are of slow", o.kind);
  if (o.after && o.kind != "expire") return invalid("lab fault {}: --after is of expire", o.kind);
  return request;
}

Status cause(const FaultOptions& o, Output& out) {
  OK_OR_RETURN(request, request_of(o));
  OK_OR_RETURN(lab, lab::open(o.lab));
  if (lab.phase != lab::Phase::up) return unavailable("{}: is not up yet", lab.name);
  OK_OR_RETURN(done, lab::fault::cause(lab, request));
  const std::string name = o.lab == lab::Options{}.name ? "" : format(" --name {}", o.lab);
  const std::string heal =
      done.heal_name.empty() ? "" : format("stoker lab fault heal {}{}", done.heal_name, name);
  out.line("{} ({})", done.text, heal.empty() ? "nothing to heal" : heal);
  out.json(
      json_text(nlohmann::ordered_json{{"lab", o.lab},
                                       {"kind", o.kind},
                                       {"target", o.target},
                                       {"rank", o.rank ? ordered_json(*o.rank) : ordered_json(nullptr)},
                                       {"what", done.text},
                                       {"heal", heal.empty() ? ordered_json(nullptr) : ordered_json(heal)}}));
  return {};
}

}  // namespace

int lab_fault(std::span<const std::string> words, Output& out) {
  FaultOptions o;
  Arguments arguments("lab fault",
                      "Breaks something in a lab, and heals it again. Alone: what there is to break.");
  arguments.optional_positional("KIND", &o.kind,
                                "kill, freeze, cut, slow, fill, drain, expire, preempt, oom; or heal");
  arguments.optional_positional("TARGET", &o.target,
                                "a node, 'controller', 'shared' or a job id; heal without one heals all");
  add_lab_name(arguments, &o.lab);
  arguments.option("--rank", &o.rank, "N", "kill, freeze: which rank of the job");
  arguments.option("--rate", &o.rate, "RATE", "slow: 500kbit, 10mbit, 1gbit [10mbit]");
  arguments.option("--delay", &o.delay, "TIME", "slow: added to each packet, each way");
  arguments.option("--loss", &o.loss, "SHARE", "slow: of packets, each way, as in 1%");
  arguments.option("--after", &o.after, "TIME", "expire: how far ahead the limit is set [now]");
  arguments.example("stoker lab fault cut n3");
  arguments.example("stoker lab fault slow n2 --rate 1mbit --loss 1%");
  arguments.example("stoker lab fault kill 12 --rank 1");
  arguments.example("stoker lab fault heal");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.kind == "heal") return lab_heal(o.lab, o.target, out);
  const Status status = o.kind.empty() ? list(o, out) : cause(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
