// Generates a site profile for an unknown cluster from Slurm's configuration. Thread-safe: no state.
#pragma once

#include <string>

#include "job/site/site.h"
#include "slurm/queue/cluster.h"

namespace stoker::job {

/// Properties of a machine, besides Slurm's, for the profile.
struct MachineInfo {
  std::string day;  ///< "2026-11-21"
  bool has_lmod = false;
  bool has_modules = false;          ///< environment-modules
  std::vector<std::string> storage;  ///< variables that contain folders: "SCRATCH", "SLURM_TMPDIR"
  std::string quota_command;         ///< "" if none is known
};

/// The profile. Omits partitions whose name is not a valid key.
Site describe_cluster(const slurm::ClusterInfo& facts, const MachineInfo& seen);

}  // namespace stoker::job
