// Finds the processes of a lab. Used by down, status and faults. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab {

/// A process of a lab.
struct LabProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string program;  ///< as /proc/PID/comm has it: "slurmd", "slurmstepd", "python3"
  std::string node;     ///< of slurmd, slurmstepd and their descendants; else empty
};
/// The lab's daemons, their descendants, and all processes in its network namespaces, found in /proc by
/// environment and namespace, not by lab.json. Excludes this process and its ancestors.
std::vector<LabProcess> lab_processes(const Lab& lab);
/// Like lab_processes(), for the lab in this folder, without lab.json.
std::vector<LabProcess> find_lab_processes(const Path& folder);

}  // namespace stoker::lab
