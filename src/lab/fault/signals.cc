// Kill and freeze: SIGKILL and SIGSTOP to a daemon of the lab or to a rank of a job.
#include <algorithm>
#include <csignal>

#include "lab/daemons.h"
#include "lab/fault/actions.h"
#include "lab/fault/ranks.h"
#include "lab/fault/slurm_query.h"
#include "lab/launch.h"
#include "lab/processes.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kController = "controller";
constexpr auto kStartTime = std::chrono::seconds(60);
constexpr auto kEndTime = std::chrono::seconds(10);

bool is_kill(const std::string& kind) { return kind == "kill"; }

// The daemon's pid if it runs the expected program, else 0.
pid_t daemon_pid(const Lab& lab, std::string_view target) {
  const LabNode* node = lab.find(target);
  const pid_t pid = node != nullptr ? node->slurmd : lab.controller;
  const std::string_view program = node != nullptr ? "slurmd" : "slurmctld";
  const auto all = lab_processes(lab);
  const bool is_match =
      std::ranges::any_of(all, [&](const LabProcess& m) { return m.pid == pid && m.program == program; });
  return pid > 0 && is_match ? pid : 0;
}

Status prepare_daemon(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  if (request.rank) return invalid("{}: has no ranks (--rank {})", request.target, *request.rank);
  const bool is_controller = request.target == kController;
  const std::string daemon = is_controller ? "slurmctld" : "slurmd";
  if (daemon_pid(lab, request.target) == 0) return invalid("{}: {} is not running", request.target, daemon);
  entry->text = format("{} {}", daemon, is_kill(request.kind) ? "killed" : "frozen");
  entry->notes["effect"] = is_controller ? "jobs continue, no job starts, commands get no answer"
                                         : "its jobs continue until Slurm marks the node down";
  return {};
}

Result<RankProcesses> find_rank(const Lab& lab, const JournalEntry& entry) {
  const auto ranks = ranks_of(lab, entry.note("job"));
  const auto found = ranks.find(entry.rank);
  if (found != ranks.end()) return found->second;
  if (ranks.empty()) return invalid("{}: no running rank", entry.target);
  return invalid("{}: has no rank {} (ranks {}-{} run)", entry.target, entry.rank, ranks.begin()->first,
                 ranks.rbegin()->first);
}

Status prepare_rank(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  STOKER_ASSIGN_OR_RETURN(job, find_running_job(lab, request.target));
  if (!request.rank) return invalid("{}: --rank N is required", request.target);
  entry->rank = *request.rank;
  entry->notes["job"] = job.id;
  STOKER_ASSIGN_OR_RETURN(rank, find_rank(lab, *entry));
  entry->text = format("rank {} on {} {}", entry->rank, rank.node.empty() ? "this host" : rank.node,
                       is_kill(request.kind) ? "killed (signal 9)" : "frozen");
  return {};
}

Status send_rank_signal(const Lab& lab, const JournalEntry& entry, int signal) {
  STOKER_ASSIGN_OR_RETURN(rank, find_rank(lab, entry));
  if (signal_rank(rank, entry.note("job"), signal) > 0) return {};
  return unavailable("{}: rank {} exited in the meantime", entry.target, entry.rank);
}

Status restart_daemon(Lab& lab, const JournalEntry& entry) {
  if (daemon_pid(lab, entry.target) != 0) return {};
  if (LabNode* node = lab.find(entry.target)) {
    STOKER_RETURN_IF_ERROR(start_slurmd(lab, *node));
  } else {
    STOKER_RETURN_IF_ERROR(start_controller(lab));
  }
  return save(lab);
}

// A restarted controller waits for each node to respond. Nodes with an active fault may not respond.
Result<std::string> wait_for_healthy_nodes(const Lab& lab) {
  STOKER_ASSIGN_OR_RETURN(entries, active_faults(lab));
  for (const LabNode& node : lab.nodes) {
    const bool is_healthy = std::ranges::find(entries, node.name, &JournalEntry::target) == entries.end();
    if (is_healthy && !wait_until_responding(lab, node.name)) {
      return unavailable("controller: slurmctld runs, but gets no answer from {}", node.name);
    }
  }
  return std::string("slurmctld answers");
}

}  // namespace

Status prepare_signal(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  if (request.target == kController || lab.find(request.target) != nullptr)
    return prepare_daemon(lab, request, entry);
  const bool is_word = request.target.empty() || request.target[0] < '0' || request.target[0] > '9';
  return is_word ? find_node(lab, request.target).status() : prepare_rank(lab, request, entry);
}

Status send_signal(Lab& lab, JournalEntry* entry) {
  const int signal = is_kill(entry->kind) ? SIGKILL : SIGSTOP;
  if (entry->rank >= 0) return send_rank_signal(lab, *entry, signal);
  const pid_t pid = daemon_pid(lab, entry->target);
  if (pid == 0 || ::kill(pid, signal) != 0)
    return unavailable("{}: its daemon exited in the meantime", entry->target);
  const Deadline deadline = Deadline::after(kEndTime);
  while (signal == SIGKILL && is_running(pid) && !deadline.passed()) {
    RealClock().sleep(std::chrono::milliseconds(5));
  }
  return {};
}

Result<std::string> undo_signal(Lab& lab, const JournalEntry& entry) {
  if (entry.rank >= 0) {
    const Status resumed = send_rank_signal(lab, entry, SIGCONT);
    return resumed.ok() ? format("rank {} continues", entry.rank) : format("rank {} is gone", entry.rank);
  }
  const pid_t pid = daemon_pid(lab, entry.target);
  if (!is_kill(entry.kind) && pid != 0) {
    if (::kill(pid, SIGCONT) != 0) return posix_error(entry.target, errno);
  } else {
    STOKER_RETURN_IF_ERROR(restart_daemon(lab, entry));
  }
  if (entry.target == kController) {
    STOKER_RETURN_IF_ERROR(wait_for_controller(lab, Deadline::after(kStartTime)));
    return wait_for_healthy_nodes(lab);
  }
  if (wait_until_responding(lab, entry.target)) return std::string("slurmd answers");
  return unavailable("{}: slurmd runs, but does not answer Slurm", entry.target);
}

}  // namespace stoker::lab::fault
