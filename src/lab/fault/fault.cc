#include "lab/fault/fault.h"

#include <algorithm>
#include <cmath>

#include "lab/fault/actions.h"
#include "lab/fault/slurm_query.h"

namespace stoker::lab::fault {
namespace {

struct Actions {
  FaultKind kind;
  Prepare prepare;
  Act act;
  Undo undo;  // nullptr: cannot be undone
};

constexpr Actions kActions[] = {
    {{"kill", "NODE, controller, JOB --rank N", "kills a node's slurmd, slurmctld, or a rank (SIGKILL)"},
     prepare_signal,
     send_signal,
     undo_signal},
    {{"freeze", "NODE, controller, JOB --rank N", "stops it without killing it (SIGSTOP)"},
     prepare_signal,
     send_signal,
     undo_signal},
    {{"cut", "NODE", "takes the node's link down"}, prepare_cut, cut, undo_cut},
    {{"slow", "NODE", "slows the node's link: --rate, --delay, --loss"}, prepare_slow, slow, undo_slow},
    {{"fill", "NODE, shared", "fills the node's local disk or the shared disk"},
     prepare_fill,
     fill,
     undo_fill},
    {{"drain", "NODE", "drains the node: it finishes its jobs and gets no new ones"},
     prepare_drain,
     drain,
     undo_drain},
    {{"expire", "JOB", "expires the job's time limit, now or after --after"},
     prepare_expire,
     expire,
     undo_expire},
    {{"preempt", "JOB", "preempts the job by one of higher priority (partition low)"},
     prepare_preempt,
     preempt,
     undo_preempt},
    {{"oom", "JOB", "starts a step that exceeds its memory request"}, prepare_oom, oom, nullptr},
};

const Actions* find_actions(std::string_view kind) {
  const auto found = std::ranges::find(kActions, kind, [](const Actions& a) { return a.kind.name; });
  return found == std::end(kActions) ? nullptr : found;
}

// A killed rank cannot be restarted.
bool can_undo(const Actions& actions, const JournalEntry& entry) {
  return actions.undo != nullptr && !(entry.kind == "kill" && entry.rank >= 0);
}

bool targets_daemon(const JournalEntry& entry) {
  return (entry.kind == "kill" || entry.kind == "freeze") && entry.rank < 0;
}

// Kill and freeze of one daemon exclude each other.
bool conflicts_with(const JournalEntry& earlier, const JournalEntry& wanted) {
  if (earlier.target != wanted.target || earlier.rank != wanted.rank) return false;
  return earlier.kind == wanted.kind || (targets_daemon(earlier) && targets_daemon(wanted));
}

std::string heal_command(const Lab& lab, std::string_view target) {
  const std::string name = lab.name == Options{}.name ? "" : format(" --name {}", lab.name);
  return format("stoker lab fault heal {}{}", target, name);
}

Status check_conflicts(const Lab& lab, const JournalEntry& wanted) {
  STOKER_ASSIGN_OR_RETURN(entries, active_faults(lab));
  for (const JournalEntry& earlier : entries) {
    if (conflicts_with(earlier, wanted)) {
      return exists("{}: {} since {}", earlier.target, earlier.text,
                    rounded_duration(std::chrono::duration_cast<Duration>(
                        Seconds(std::max(0.0, unix_seconds(RealClock().wall()) - earlier.time)))))
          .cure("{}", heal_command(lab, earlier.target));
    }
    // Slurm's commands would hang without the controller, so heal it first.
    if (earlier.target == "controller" && !targets_daemon(wanted)) {
      return unavailable("{}: the controller does not answer (it has an active fault)", lab.name)
          .cure("{}", heal_command(lab, "controller"));
    }
  }
  return {};
}

Result<std::string> undo(Lab& lab, const JournalEntry& entry) {
  const Actions* actions = find_actions(entry.kind);
  if (actions == nullptr || actions->undo == nullptr) {
    return corrupt("{}: unknown fault '{}' (faults/{}.json)", entry.target, printable(entry.kind), entry.id);
  }
  STOKER_ASSIGN_OR_RETURN(text, actions->undo(lab, entry));
  STOKER_RETURN_IF_ERROR(remove_entry(lab, entry));
  return std::move(text);
}

// Heals the controller first, because other faults need it.
void sort_controller_first(std::vector<JournalEntry>* entries) {
  std::ranges::stable_partition(*entries, [](const JournalEntry& e) { return e.target == "controller"; });
}

}  // namespace

std::span<const FaultKind> kinds() {
  static const std::vector<FaultKind> kKinds = [] {
    std::vector<FaultKind> all;
    for (const Actions& actions : kActions) all.push_back(actions.kind);
    return all;
  }();
  return kKinds;
}

Result<InjectedFault> inject(Lab& lab, const FaultRequest& request) {
  const Actions* actions = find_actions(request.kind);
  if (actions == nullptr) {
    std::vector<std::string_view> names;
    for (const FaultKind& kind : kinds()) names.push_back(kind.name);
    return invalid("unknown fault '{}'{}", printable(request.kind), suggestion(request.kind, names))
        .cure("stoker lab fault");
  }
  if (request.target.empty()) {
    return invalid("{}: needs a target ({})", request.kind, actions->kind.targets).cure("stoker lab fault");
  }
  JournalEntry entry{.kind = request.kind, .target = request.target, .rank = request.rank.value_or(-1)};
  STOKER_RETURN_IF_ERROR(check_conflicts(lab, entry));
  STOKER_RETURN_IF_ERROR(actions->prepare(lab, request, &entry));
  const bool is_recorded = can_undo(*actions, entry);
  if (is_recorded) STOKER_RETURN_IF_ERROR(write_entry(lab, &entry));
  const std::string planned = entry.text;
  if (const Status done = actions->act(lab, &entry); !done.ok()) {
    // The fault may be partly in effect: a file, or a job whose submission response was lost.
    if (is_recorded && !targets_daemon(entry)) (void)actions->undo(lab, entry);
    if (is_recorded) STOKER_RETURN_IF_ERROR(remove_entry(lab, entry));
    return done;
  }
  // Informative only: healing does not need the update, which fails on a disk that was just filled.
  if (is_recorded && entry.text != planned) (void)update_entry(lab, entry);
  const std::string effect = entry.note("effect");
  return InjectedFault{
      .text = format("{}: {}{}{}", entry.target, entry.text, effect.empty() ? "" : ": ", effect),
      .heal_target = is_recorded ? entry.target : ""};
}

Result<HealResult> heal(Lab& lab, std::string_view target) {
  STOKER_ASSIGN_OR_RETURN(entries, active_faults(lab));
  std::vector<std::string> targets;
  for (const JournalEntry& entry : entries) {
    if (std::ranges::find(targets, entry.target) == targets.end()) targets.push_back(entry.target);
  }
  if (!target.empty() && std::ranges::find(targets, target) == targets.end()) {
    const std::string others =
        targets.empty() ? "no active faults" : format("active: {}", join(targets, ", "));
    return not_found("{}: nothing to heal in {} ({})", printable(target), lab.name, others);
  }
  sort_controller_first(&entries);
  HealResult healed;
  for (const JournalEntry& entry : entries) {
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
