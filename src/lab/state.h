// The current state of a lab, from Slurm and /proc. Used by `stoker lab status`.
#pragma once

#include <string>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab {

struct NodeState {
  std::string name;
  std::string state;   ///< Slurm's state: "idle", "mixed", "down*"; "unknown" if slurmctld does not answer
  std::string cpus;    ///< "1/2": allocated of all
  std::string reason;  ///< why it is down or drained; may be empty
  bool has_daemon = false;
  std::vector<std::string> jobs;  ///< ids of the jobs on it
};

struct DaemonState {
  std::string name;
  pid_t pid = 0;
  bool is_running = false;
};

struct LabState {
  bool is_answering = false;  ///< slurmctld
  std::vector<DaemonState> daemons;
  std::vector<NodeState> nodes;
  int pending = 0;
  int running = 0;
};

/// Runs sinfo and squeue, each for at most five seconds.
LabState query_state(const Lab& lab);

}  // namespace stoker::lab
