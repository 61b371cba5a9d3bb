// Kill and freeze: SIGKILL and SIGSTOP to a daemon of the lab or to a rank of a job.
#include <algorithm>
#include <csignal>

#include "lab/daemons.h"
#include "lab/fault/act.h"
#include "lab/fault/ask.h"
#include "lab/fault/ranks.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kController = "controller";
constexpr auto kStartTime = std::chrono::seconds(60);
constexpr auto kEndTime = std::chrono::seconds(10);

bool is_kill(const std::string& kind) { return kind == "kill"; }

// The daemon's pid if it runs as what lab.json says it is, else 0.
pid_t daemon_pid(const Lab& lab, std::string_view target) {
  const Node* node = lab.find(target);
  const pid_t pid = node != nullptr ? node->slurmd : lab.controller;
  const std::string_view program = node != nullptr ? "slurmd" : "slurmctld";
  const auto all = members(lab);
  const bool is_it =
      std::ranges::any_of(all, [&](const Member& m) { return m.pid == pid && m.program == program; });
  return pid > 0 && is_it ? pid : 0;
}

Status prepare_daemon(const Lab& lab, const Request& request, Entry* entry) {
  if (request.rank) return invalid("{}: has no ranks (--rank {})", request.target, *request.rank);
  const bool is_controller = request.target == kController;
  const std::string daemon = is_controller ? "slurmctld" : "slurmd";
  if (daemon_pid(lab, request.target) == 0) return invalid("{}: {} does not run", request.target, daemon);
  entry->text = format("{} {}", daemon, is_kill(request.kind) ? "killed" : "frozen");
  entry->notes["effect"] = is_controller ? "jobs run on, nothing starts, no command is answered"
                                         : "its jobs run on until Slurm misses the node";
  return {};
}

Result<RankProcesses> find_rank(const Lab& lab, const Entry& entry) {
  const auto ranks = ranks_of(lab, entry.note("job"));
  const auto found = ranks.find(entry.rank);
  if (found != ranks.end()) return found->second;
  if (ranks.empty()) return invalid("{}: no rank runs", entry.target);
  return invalid("{}: has no rank {} (ranks {}-{} run)", entry.target, entry.rank, ranks.begin()->first,
                 ranks.rbegin()->first);
}

Status prepare_rank(const Lab& lab, const Request& request, Entry* entry) {
  OK_OR_RETURN(job, find_running_job(lab, request.target));
  if (!request.rank) return invalid("{}: which of its ranks? (--rank N)", request.target);
  entry->rank = *request.rank;
  entry->notes["job"] = job.id;
  OK_OR_RETURN(rank, find_rank(lab, *entry));
  entry->text = format("rank {} on {} {}", entry->rank, rank.node.empty() ? "this host" : rank.node,
                       is_kill(request.kind) ? "killed (signal 9)" : "frozen");
  return {};
}

Status signal_of_rank(const Lab& lab, const Entry& entry, int signal) {
  OK_OR_RETURN(rank, find_rank(lab, entry));
  if (signal_rank(rank, entry.note("job"), signal) > 0) return {};
  return unavailable("{}: rank {} ended by itself meanwhile", entry.target, entry.rank);
}

Status start_again(Lab& lab, const Entry& entry) {
  if (daemon_pid(lab, entry.target) != 0) return {};
  if (Node* node = lab.find(entry.target)) {
    RETURN_IF_ERROR(start_slurmd(lab, *node));
  } else {
    RETURN_IF_ERROR(start_controller(lab));
  }
  return save(lab);
}

// A controller that was started again knows no node until it has answered; those with a fault of their own
// may not.
Result<std::string> wait_for_healthy_nodes(const Lab& lab) {
  OK_OR_RETURN(entries, in_force(lab));
  for (const Node& node : lab.nodes) {
    const bool is_healthy = std::ranges::find(entries, node.name, &Entry::target) == entries.end();
    if (is_healthy && !wait_until_heard(lab, node.name)) {
      return unavailable("controller: slurmctld runs, but has not heard from {}", node.name);
    }
  }
  return std::string("slurmctld answers");
}

}  // namespace

Status prepare_signal(const Lab& lab, const Request& request, Entry* entry) {
  if (request.target == kController || lab.find(request.target) != nullptr)
    return prepare_daemon(lab, request, entry);
  const bool is_word = request.target.empty() || request.target[0] < '0' || request.target[0] > '9';
  return is_word ? find_node(lab, request.target).status() : prepare_rank(lab, request, entry);
}

Status send_signal(Lab& lab, Entry* entry) {
  const int signal = is_kill(entry->kind) ? SIGKILL : SIGSTOP;
  if (entry->rank >= 0) return signal_of_rank(lab, *entry, signal);
  const pid_t pid = daemon_pid(lab, entry->target);
  if (pid == 0 || ::kill(pid, signal) != 0)
    return unavailable("{}: its daemon ended by itself meanwhile", entry->target);
  const Deadline deadline = Deadline::after(kEndTime);
  while (signal == SIGKILL && is_running(pid) && !deadline.passed()) {
    RealClock().sleep(std::chrono::milliseconds(5));
  }
  return {};
}

Result<std::string> undo_signal(Lab& lab, const Entry& entry) {
  if (entry.rank >= 0) {
    const Status woken = signal_of_rank(lab, entry, SIGCONT);
    return woken.ok() ? format("rank {} goes on", entry.rank) : format("rank {} is gone", entry.rank);
  }
  const pid_t pid = daemon_pid(lab, entry.target);
  if (!is_kill(entry.kind) && pid != 0) {
    if (::kill(pid, SIGCONT) != 0) return posix_error(entry.target, errno);
  } else {
    RETURN_IF_ERROR(start_again(lab, entry));
  }
  if (entry.target == kController) {
    RETURN_IF_ERROR(wait_for_controller(lab, Deadline::after(kStartTime)));
    return wait_for_healthy_nodes(lab);
  }
  if (wait_until_heard(lab, entry.target)) return std::string("slurmd answers");
  return unavailable("{}: slurmd runs, but Slurm has not heard from it", entry.target);
}

}  // namespace stoker::lab::fault
