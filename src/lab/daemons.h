// Starts the lab's daemons, and tells which processes belong to a lab. Used by up, down, status and faults.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "lab/lab.h"

namespace stoker::lab {

/// Starts this node's slurmd (it must not run) and sets `node.slurmd`; the caller saves. Returns at once: the
/// node answers when Slurm says so.
Status start_slurmd(const Lab& lab, Node& node);
/// Starts slurmctld (it must not run), which goes on from its saved state; sets `lab.controller`.
Status start_controller(Lab& lab);
/// Waits until slurmctld answers, or Timeout with the last lines of its log.
Status wait_for_controller(const Lab& lab, Deadline deadline);

/// A process of a lab.
struct Member {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string program;  ///< as /proc/PID/comm has it: "slurmd", "slurmstepd", "python3"
  std::string node;     ///< of slurmd, slurmstepd and their descendants; else empty
};
/// Daemons of the lab, their descendants, and whatever runs in its network namespaces: found in /proc by
/// environment and namespace, not by lab.json. Never this process or one of its ancestors.
std::vector<Member> members(const Lab& lab);

/// Whether a process of this pid runs (a zombie does not).
bool is_running(pid_t pid);

}  // namespace stoker::lab
