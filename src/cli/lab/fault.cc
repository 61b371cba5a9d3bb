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

std::string target_text(const lab::fault::JournalEntry& entry) {
  return entry.rank < 0 ? entry.target : format("{} rank {}", entry.target, entry.rank);
}

void print_kinds(Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const lab::fault::FaultKind& kind : lab::fault::kinds()) {
    rows.push_back({std::string(kind.name), std::string(kind.targets), std::string(kind.what)});
  }
  out.table({"FAULT", "TARGETS", "EFFECT"}, rows);
}

void print_active_faults(const std::vector<lab::fault::JournalEntry>& entries, double now, Output& out) {
  std::vector<std::vector<std::string>> rows;
  for (const lab::fault::JournalEntry& entry : entries) {
    const auto age = std::chrono::duration_cast<Duration>(Seconds(std::max(0.0, now - entry.time)));
    rows.push_back({target_text(entry), entry.kind, rounded_duration(age), entry.text});
  }
  out.table({"TARGET", "ACTIVE FAULT", "SINCE", "EFFECT"}, rows);
}

ordered_json to_json(const lab::fault::JournalEntry& entry) {
  return {{"kind", entry.kind},
          {"target", entry.target},
          {"rank", entry.rank < 0 ? ordered_json(nullptr) : ordered_json(entry.rank)},
          {"what", entry.text},
          {"time", entry.time}};
}

// Listing fault kinds needs no lab, listing active faults does.
Status list(const FaultOptions& o, Output& out) {
  ordered_json kinds = ordered_json::array();
  for (const lab::fault::FaultKind& kind : lab::fault::kinds()) {
    kinds.push_back({{"kind", kind.name}, {"targets", kind.targets}, {"what", kind.what}});
  }
  print_kinds(out);
  ordered_json faults = ordered_json::array();
  const auto lab = lab::open(o.lab);
  if (!lab && (lab.error().code() != Code::not_found || o.lab != lab::Options{}.name)) return lab.error();
  if (lab) {
    STOKER_ASSIGN_OR_RETURN(entries, lab::fault::active_faults(*lab));
    for (const lab::fault::JournalEntry& entry : entries) faults.push_back(to_json(entry));
    out.line("");
    if (entries.empty()) out.line("{}: no active faults", o.lab);
    if (!entries.empty()) print_active_faults(entries, unix_seconds(RealClock().wall()), out);
  }
  out.json(json_text(nlohmann::ordered_json{{"lab", o.lab}, {"kinds", kinds}, {"active", faults}}));
  return {};
}

Result<lab::fault::FaultRequest> request_of(const FaultOptions& o) {
  lab::fault::FaultRequest request{.kind = o.kind, .target = o.target};
  if (o.rank) {
    if (*o.rank < 0 || *o.rank > 1'000'000) {
      return invalid("lab fault: --rank {}: ranks are counted from 0", *o.rank);
    }
    request.rank = static_cast<int>(*o.rank);
  }
  if (!o.rate.empty()) {
    auto rate = lab::fault::parse_rate(o.rate);
    if (!rate) return std::move(rate).error().with_context("lab fault: --rate");
    request.impairment.bits_per_s = *rate;
  }
  if (!o.loss.empty()) {
    auto loss = lab::fault::parse_loss(o.loss);
    if (!loss) return std::move(loss).error().with_context("lab fault: --loss");
    request.impairment.loss = *loss;
  }
  request.impairment.delay = o.delay.value_or(Duration{});
  request.after = o.after.value_or(Duration{});
  const bool is_slow = !o.rate.empty() || !o.loss.empty() || o.delay;
  if (is_slow && o.kind != "slow")
    return invalid("lab fault {}: --rate, --delay and --loss need slow", o.kind);
  if (o.after && o.kind != "expire") return invalid("lab fault {}: --after needs expire", o.kind);
  return request;
}

Status inject(const FaultOptions& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(request, request_of(o));
  STOKER_ASSIGN_OR_RETURN(lab, lab::open(o.lab));
  if (lab.phase != lab::LabPhase::up) return unavailable("{}: not up yet", lab.name);
  STOKER_ASSIGN_OR_RETURN(done, lab::fault::inject(lab, request));
  const std::string name = o.lab == lab::Options{}.name ? "" : format(" --name {}", o.lab);
  const std::string heal =
      done.heal_target.empty() ? "" : format("stoker lab fault heal {}{}", done.heal_target, name);
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
                      "Inject a fault into a lab, or heal it. Without arguments: list the faults.");
  arguments.optional_positional("KIND", &o.kind,
                                "Fault: kill, freeze, cut, slow, fill, drain, expire, preempt, oom; or heal");
  std::vector<std::string_view> kinds = {"heal"};
  for (const lab::fault::FaultKind& kind : lab::fault::kinds()) kinds.push_back(kind.name);
  arguments.choices(kinds);
  arguments.optional_positional("TARGET", &o.target,
                                "Node, 'controller', 'shared' or a job id; heal without TARGET heals all");
  add_lab_name(arguments, &o.lab);
  arguments.option("--rank", &o.rank, "N", "kill, freeze: select a rank of the job");
  arguments.option("--rate", &o.rate, "RATE", "slow: limit the rate: 500kbit, 10mbit, 1gbit [10mbit]");
  arguments.option("--delay", &o.delay, "TIME", "slow: delay each packet, each way");
  arguments.option("--loss", &o.loss, "SHARE", "slow: drop this share of packets, each way: 1%");
  arguments.option("--after", &o.after, "TIME", "expire: set the limit this far ahead [now]");
  arguments.example("stoker lab fault cut n3");
  arguments.example("stoker lab fault slow n2 --rate 1mbit --loss 1%");
  arguments.example("stoker lab fault kill 12 --rank 1");
  arguments.example("stoker lab fault heal");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.kind == "heal") return lab_heal(o.lab, o.target, out);
  const Status status = o.kind.empty() ? list(o, out) : inject(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
