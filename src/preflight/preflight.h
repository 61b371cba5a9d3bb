// Checks a job before it runs: data, programs, folders, ranks. Used by `stoker check`. Read-only.
// Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "job/job.h"
#include "job/site/site.h"
#include "observe/gpu.h"
#include "rank/gpu_binding.h"
#include "slurm/allocation.h"
#include "stoker/status.h"

namespace stoker::preflight {

/// The machine of the check.
struct HostContext {
  std::uint32_t cores = 1;  ///< available to this process
  std::string search_path;  ///< PATH
  Path program_folder;      ///< of stoker and stoker-train
  std::optional<slurm::Allocation> allocation;
  bool has_queue = false;         ///< Slurm is available: `stoker submit` can get more nodes
  std::optional<job::Site> site;  ///< the cluster, if known
  std::vector<observe::GpuDevice> gpus;
  rank::VisibleGpus visible_gpus;  ///< CUDA_VISIBLE_DEVICES
  bool has_forecasts = true;       ///< of copies to the nodes: disks are measured for some seconds
};

/// Describes the machine of this process.
Result<HostContext> inspect_host();

/// A check that passed: "data", "train: packed, 5 000 samples".
struct Fact {
  std::string name;
  Message text;
};

struct Preflight {
  std::vector<Fact> facts;
  std::vector<Finding> findings;

  /// No finding would lose the job.
  bool is_ready() const;
};

/// The folder, or its nearest existing parent.
Path nearest_existing(const Path& folder);

/// The evidence of a finding is the deciding place in the job file.
Preflight run_preflight(const job::Job& job, const HostContext& host);

}  // namespace stoker::preflight
