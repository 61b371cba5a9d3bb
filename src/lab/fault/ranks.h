// Finds the ranks of a job in this host's /proc. Used to kill and freeze a rank. Thread-safe: no state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab::fault {

/// A process's job, rank and task, from its environment.
struct RankIdentity {
  std::string job;          ///< SLURM_JOB_ID
  std::optional<int> rank;  ///< RANK, set by training launchers
  std::optional<int> task;  ///< SLURM_PROCID of a task in a numbered step (not a batch script)
};
/// Parses the bytes of /proc/PID/environ.
RankIdentity parse_rank_identity(std::string_view environ);

/// The processes of one rank.
struct RankProcesses {
  std::string node;
  std::vector<pid_t> pids;
};
/// All running ranks of a job of the lab, by RANK if any process has it, else by the task number in its step.
std::map<int, RankProcesses> ranks_of(const Lab& lab, const std::string& job);

/// Sends a signal to the processes of a rank that are still running; returns their number.
int signal_rank(const RankProcesses& processes, const std::string& job, int signal);

}  // namespace stoker::lab::fault
