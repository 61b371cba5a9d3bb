#include "slurm/queue/job_state.h"

#include <algorithm>
#include <utility>

namespace stoker::slurm {
namespace {

struct StateName {
  std::string_view full;
  std::string_view compact;  // squeue's %t
  JobState state;
};

// job_state_string() and job_state_string_compact() of Slurm 20.11 to 25.05, flags included.
constexpr StateName kStateNames[] = {
    {"PENDING", "PD", JobState::pending},       {"RUNNING", "R", JobState::running},
    {"SUSPENDED", "S", JobState::suspended},    {"COMPLETED", "CD", JobState::completed},
    {"CANCELLED", "CA", JobState::cancelled},   {"FAILED", "F", JobState::failed},
    {"TIMEOUT", "TO", JobState::timeout},       {"NODE_FAIL", "NF", JobState::node_failed},
    {"PREEMPTED", "PR", JobState::preempted},   {"BOOT_FAIL", "BF", JobState::node_failed},
    {"DEADLINE", "DL", JobState::deadline},     {"OUT_OF_MEMORY", "OOM", JobState::out_of_memory},
    {"COMPLETING", "CG", JobState::completing}, {"CONFIGURING", "CF", JobState::running},
    {"POWER_UP_NODE", "PN", JobState::running}, {"RESIZING", "RS", JobState::running},
    {"SIGNALING", "SI", JobState::running},     {"STAGE_OUT", "SO", JobState::completing},
    {"STOPPED", "ST", JobState::suspended},     {"REQUEUED", "RQ", JobState::pending},
    {"REQUEUE_FED", "RF", JobState::pending},   {"REQUEUE_HOLD", "RH", JobState::pending},
    {"RESV_DEL_HOLD", "RD", JobState::pending}, {"SPECIAL_EXIT", "SE", JobState::pending},
    {"EXPEDITING", "EX", JobState::pending},    {"REVOKED", "RV", JobState::cancelled},
    {"LAUNCH_FAILED", "LF", JobState::failed},  {"RECONFIG_FAIL", "RC", JobState::node_failed},
};

struct Reason {
  std::string_view name;
  std::string_view words;
};

constexpr Reason kReasons[] = {
    {"Priority", "other jobs have a higher priority"},
    {"Resources", "it is next and waits for free resources"},
    {"Dependency", "it waits for another job"},
    {"DependencyNeverSatisfied", "its dependency cannot be satisfied: it will never start"},
    {"BeginTime", "it cannot start before its begin time; a requeued job waits about two minutes"},
    {"JobHeldUser", "it is held; use scontrol release to release it"},
    {"JobHeldAdmin", "it is held by an administrator"},
    {"JobHoldMaxRequeue", "it was requeued too often and is held"},
    {"JobArrayTaskLimit", "the maximum number of tasks of its array is running"},
    {"Licenses", "it waits for a licence"},
    {"Reservation", "it waits for its reservation"},
    {"ReqNodeNotAvail", "a requested node is down, drained or reserved"},
    {"PartitionDown", "its partition is down"},
    {"PartitionInactive", "its partition is inactive"},
    {"PartitionTimeLimit", "its time limit exceeds the partition's limit: it will never start"},
    {"PartitionNodeLimit", "its number of nodes exceeds the partition's limit: it will never start"},
    {"PartitionConfig", "its partition does not allow its request: it will never start"},
    {"AccountNotAllowed", "its account may not use this partition"},
    {"QOSNotAllowed", "its quality of service is not allowed here"},
    {"InvalidAccount", "its account is not valid"},
    {"InvalidQOS", "its quality of service is not valid"},
    {"BadConstraints", "no node satisfies its request"},
    {"NodeDown", "a requested node is down"},
    {"launch_failed_requeued_held", "its start failed on a node, and it is held"},
    {"job_requeued_in_held_state", "it was requeued, and is held"},
};

// Descriptions for all unlisted reasons with these prefixes.
constexpr Reason kReasonPrefixes[] = {
    {"QOS", "a limit of its quality of service is reached"},
    {"Assoc", "a limit of its account is reached"},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace

std::string_view to_text(JobState state) {
  switch (state) {
    case JobState::pending:
      return "pending";
    case JobState::running:
      return "running";
    case JobState::suspended:
      return "suspended";
    case JobState::completing:
      return "completing";
    case JobState::completed:
      return "completed";
    case JobState::failed:
      return "failed";
    case JobState::cancelled:
      return "cancelled";
    case JobState::timeout:
      return "timeout";
    case JobState::out_of_memory:
      return "out of memory";
    case JobState::node_failed:
      return "node failed";
    case JobState::preempted:
      return "preempted";
    case JobState::deadline:
      return "deadline";
    case JobState::unknown:
      return "unknown";
  }
  return "unknown";
}

JobState parse_job_state(std::string_view text) {
  // "CANCELLED by 1000". Since 23.11, flags follow the state, separated by ','.
  std::string_view word = text.substr(0, text.find_first_of(" ,"));
  const bool is_cut = word.ends_with('+');
  if (is_cut) word.remove_suffix(1);
  for (const StateName& known : kStateNames) {
    if (equal_ignoring_case(word, known.full) || (!is_cut && equal_ignoring_case(word, known.compact)))
      return known.state;
    // sacct truncates to the column width: "OUT_OF_ME+".
    if (is_cut && word.size() >= 4 && equal_ignoring_case(word, known.full.substr(0, word.size())))
      return known.state;
  }
  return JobState::unknown;
}

bool is_over(JobState state) {
  switch (state) {
    case JobState::pending:
    case JobState::running:
    case JobState::suspended:
    case JobState::completing:
    case JobState::unknown:
      return false;
    default:
      return true;
  }
}

std::string_view reason_text(std::string_view reason) {
  // "ReqNodeNotAvail, UnavailableNodes:n3"; "Nodes required for job are DOWN, ..." counts as 'Resources'.
  const std::string_view word = reason.substr(0, reason.find(','));
  for (const Reason& known : kReasons) {
    if (word == known.name) return known.words;
  }
  for (const Reason& known : kReasonPrefixes) {
    if (word.starts_with(known.name)) return known.words;
  }
  return "";
}

}  // namespace stoker::slurm
