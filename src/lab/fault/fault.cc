#include "lab/fault/fault.h"

#include <algorithm>
#include <cmath>

#include "lab/fault/act.h"
#include "lab/fault/ask.h"

namespace stoker::lab::fault {
namespace {

struct Actions {
  Kind kind;
  Prepare prepare;
  Act act;
  Undo undo;  // nullptr: what is done is done
};

constexpr Actions kActions[] = {
    {{"kill", "NODE, controller, JOB --rank N", "ends a node's slurmd, slurmctld, or a rank (signal 9)"},
     prepare_signal,
     send_signal,
     undo_signal},
    {{"freeze", "NODE, controller, JOB --rank N", "stops it without ending it"},
     prepare_signal,
     send_signal,
     undo_signal},
    {{"cut", "NODE", "its cable: no packet passes"}, prepare_cut, cut, undo_cut},
    {{"slow", "NODE", "its cable: --rate, --delay, --loss"}, prepare_slow, slow, undo_slow},
    {{"fill", "NODE, shared", "its local disk, or the shared one, to the last byte"},
     prepare_fill,
     fill,
     undo_fill},
    {{"drain", "NODE", "it finishes its jobs and gets no more"}, prepare_drain, drain, undo_drain},
    {{"expire", "JOB", "its time limit, now or --after a while"}, prepare_expire, expire, undo_expire},
    {{"preempt", "JOB", "a job of higher priority wants its nodes (partition low)"},
     prepare_preempt,
     preempt,
     undo_preempt},
    {{"oom", "JOB", "a step of it takes more memory than it may"}, prepare_oom, oom, nullptr},
};

const Actions* find_actions(std::string_view kind) {
  const auto found = std::ranges::find(kActions, kind, [](const Actions& a) { return a.kind.name; });
  return found == std::end(kActions) ? nullptr : found;
}

// A rank that was killed stays so.
bool can_undo(const Actions& actions, const Entry& entry) {
  return actions.undo != nullptr && !(entry.kind == "kill" && entry.rank >= 0);
}

bool is_of_daemon(const Entry& entry) {
  return (entry.kind == "kill" || entry.kind == "freeze") && entry.rank < 0;
}

// The one that a daemon's death and its sleep both are to a second fault of it.
bool excludes(const Entry& earlier, const Entry& wanted) {
  if (earlier.target != wanted.target || earlier.rank != wanted.rank) return false;
  return earlier.kind == wanted.kind || (is_of_daemon(earlier) && is_of_daemon(wanted));
}

std::string heal_command(const Lab& lab, std::string_view target) {
  const std::string name = lab.name == Options{}.name ? "" : format(" --name {}", lab.name);
  return format("stoker lab fault heal {}{}", target, name);
}

Status check_others(const Lab& lab, const Entry& wanted) {
  OK_OR_RETURN(entries, in_force(lab));
  for (const Entry& earlier : entries) {
    if (excludes(earlier, wanted)) {
      return exists("{}: {} since {}", earlier.target, earlier.text,
                    rounded_duration(std::chrono::duration_cast<Duration>(
                        Seconds(std::max(0.0, unix_seconds(RealClock().wall()) - earlier.time)))))
          .cure("{}", heal_command(lab, earlier.target));
    }
    // Nothing but healing it helps then: Slurm's commands would wait for an answer that never comes.
    if (earlier.target == "controller" && !is_of_daemon(wanted)) {
      return unavailable("{}: its controller does not answer (a fault of it is in force)", lab.name)
          .cure("{}", heal_command(lab, "controller"));
    }
  }
  return {};
}

Result<std::string> undo(Lab& lab, const Entry& entry) {
  const Actions* actions = find_actions(entry.kind);
  if (actions == nullptr || actions->undo == nullptr) {
    return corrupt("{}: no fault '{}' is known (faults/{}.json)", entry.target, printable(entry.kind),
                   entry.id);
  }
  OK_OR_RETURN(text, actions->undo(lab, entry));
  RETURN_IF_ERROR(forget(lab, entry));
  return std::move(text);
}

// The controller first, since the others need it to answer.
void put_in_order(std::vector<Entry>* entries) {
  std::ranges::stable_partition(*entries, [](const Entry& e) { return e.target == "controller"; });
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> kKinds = [] {
    std::vector<Kind> all;
    for (const Actions& actions : kActions) all.push_back(actions.kind);
    return all;
  }();
  return kKinds;
}

Result<Done> cause(Lab& lab, const Request& request) {
  const Actions* actions = find_actions(request.kind);
  if (actions == nullptr) {
    std::vector<std::string_view> names;
    for (const Kind& kind : kinds()) names.push_back(kind.name);
    return invalid("no fault '{}'{}", printable(request.kind), suggestion(request.kind, names))
        .cure("stoker lab fault");
  }
  if (request.target.empty()) {
    return invalid("{}: of what? ({})", request.kind, actions->kind.targets).cure("stoker lab fault");
  }
  Entry entry{.kind = request.kind, .target = request.target, .rank = request.rank.value_or(-1)};
  RETURN_IF_ERROR(check_others(lab, entry));
  RETURN_IF_ERROR(actions->prepare(lab, request, &entry));
  const bool is_recorded = can_undo(*actions, entry);
  if (is_recorded) RETURN_IF_ERROR(record(lab, &entry));
  const std::string planned = entry.text;
  if (const Status done = actions->act(lab, &entry); !done.ok()) {
    // Half of it may be there: a file, or a job that was submitted although its answer was lost.
    if (is_recorded && !is_of_daemon(entry)) (void)actions->undo(lab, entry);
    if (is_recorded) RETURN_IF_ERROR(forget(lab, entry));
    return done;
  }
  // Only for people: healing does not need it, and on a disk that was just filled there is no room for it.
  if (is_recorded && entry.text != planned) (void)update(lab, entry);
  const std::string effect = entry.note("effect");
  return Done{.text = format("{}: {}{}{}", entry.target, entry.text, effect.empty() ? "" : ": ", effect),
              .heal_name = is_recorded ? entry.target : ""};
}

Result<Healed> heal(Lab& lab, std::string_view target) {
  OK_OR_RETURN(entries, in_force(lab));
  std::vector<std::string> targets;
  for (const Entry& entry : entries) {
    if (std::ranges::find(targets, entry.target) == targets.end()) targets.push_back(entry.target);
  }
  if (!target.empty() && std::ranges::find(targets, target) == targets.end()) {
    const std::string others =
        targets.empty() ? "no fault is in force" : format("in force: {}", join(targets, ", "));
    return not_found("{}: nothing to heal in {} ({})", printable(target), lab.name, others);
  }
  put_in_order(&entries);
  Healed healed;
  for (const Entry& entry : entries) {
    if (!target.empty() && entry.target != target) continue;
    auto text = undo(lab, entry);
    if (text) {
      healed.lines.push_back(format("{}: {}", entry.target, *text));
    } else {
      healed.failures.push_back(std::move(text).error());
    }
  }
  return healed;
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"kbit", 1'000}, {"mbit", 1'000'000}, {"gbit", 1'000'000'000}};
  for (const auto& [unit, bits] : kUnits) {
    std::uint64_t count = 0;
    if (text.ends_with(unit) && parse_number(text.substr(0, text.size() - unit.size()), &count) &&
        count > 0 && count <= 400'000'000'000 / bits) {
      return count * bits;
    }
  }
  return invalid("'{}' is not a rate (as in 500kbit, 10mbit or 1gbit)", printable(text));
}

std::string rate_text(std::uint64_t bits_per_s) {
  if (bits_per_s % 1'000'000'000 == 0) return format("{}gbit", bits_per_s / 1'000'000'000);
  if (bits_per_s % 1'000'000 == 0) return format("{}mbit", bits_per_s / 1'000'000);
  return format("{}kbit", bits_per_s / 1'000);
}

Result<double> parse_loss(std::string_view text) {
  double percent = 0;
  if (text.ends_with('%') && parse_number(text.substr(0, text.size() - 1), &percent) && percent > 0 &&
      percent <= 100) {
    return percent / 100;
  }
  return invalid("'{}' is not a share of packets (as in 1% or 0.5%)", printable(text));
}

}  // namespace stoker::lab::fault
