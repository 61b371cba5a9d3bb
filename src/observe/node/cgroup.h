// The control group of this job on this node: its memory, its limit, kills for lack of memory, and CPU time;
// v1 and v2. Below Slurm it is the group of the whole job, not that of one task. Thread-compatible.
#pragma once

#include <optional>
#include <string>

#include "observe/node/counter.h"

namespace stoker::observe {

/// Values that cannot be read are unset.
struct CgroupUse {
  Counter memory_bytes;
  Counter limit_bytes;  ///< the smallest of the job's group and the groups above it; unset: no limit
  Counter oom_kills;    ///< processes that the kernel killed since the group was made
  std::optional<double> cpu_s;
};

class JobCgroup {
 public:
  /// Finds the groups of this process; in a container that sees only its own group, the root of the tree.
  static JobCgroup find(const NodeRoots& roots);

  CgroupUse read() const;
  /// "cgroup v2 /system.slice/slurmstepd.scope/job_12"; "" without one.
  const std::string& name() const { return name_; }

 private:
  enum class Version { none, v1, v2 };

  Counter limit_of(const char* file) const;
  Counter kills_of_v1() const;

  Version version_ = Version::none;
  std::string name_;
  Path root_;    // of the memory controller's tree
  Path memory_;  // folder of the job's group in it
  Path cpu_;     // folder of its CPU time; empty without a group below the root
};

}  // namespace stoker::observe
