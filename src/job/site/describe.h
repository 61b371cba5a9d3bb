// A site profile for a cluster that nobody has described, from what Slurm tells of it. Thread-safe: no state.
#pragma once

#include <string>

#include "job/site/site.h"
#include "slurm/queue/cluster.h"

namespace stoker::job {

/// What of a machine is seen without Slurm, for the profile.
struct SeenHere {
  std::string day;  ///< "2026-11-21"
  bool has_lmod = false;
  bool has_modules = false;          ///< environment-modules
  std::vector<std::string> storage;  ///< variables that name folders: "SCRATCH", "SLURM_TMPDIR"
  std::string quota_command;         ///< "" when there is none that is known
};

/// The profile. Partitions whose name no key can have are left out.
Site describe_cluster(const slurm::ClusterFacts& facts, const SeenHere& seen);

}  // namespace stoker::job
