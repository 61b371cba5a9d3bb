// The ranks of a job as this host's /proc shows them. Used to kill and freeze one. Thread-safe: no state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab::fault {

/// What a process's environment says about its place in a job.
struct Place {
  std::string job;          ///< SLURM_JOB_ID
  std::optional<int> rank;  ///< RANK, as launchers of training set it
  std::optional<int> task;  ///< SLURM_PROCID, of a task of a numbered step (a batch script is none)
};
/// Reads the bytes of /proc/PID/environ.
Place place_of(std::string_view environ);

/// The processes of one rank.
struct RankProcesses {
  std::string node;
  std::vector<pid_t> pids;
};
/// All ranks of a job of the lab that run now. Where any of its processes has RANK, that tells ranks; else
/// the number of the task in its step.
std::map<int, RankProcesses> ranks_of(const Lab& lab, const std::string& job);

/// Sends a signal to the processes of a rank, each only if it still is one. How many got it.
int signal_rank(const RankProcesses& processes, const std::string& job, int signal);

}  // namespace stoker::lab::fault
