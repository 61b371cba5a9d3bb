// The GPUs of each rank, as values of CUDA_VISIBLE_DEVICES: from `resources.gpus_per_rank` and
// `resources.ranks_per_gpu`. Used before the ranks start, and by each rank. Values; functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/gpu.h"
#include "rank/plan.h"
#include "stoker/status.h"

namespace stoker::rank {

/// CUDA_VISIBLE_DEVICES of a process; nullopt: not set, all GPUs are visible.
using VisibleGpus = std::optional<std::string>;

/// How the ranks of a node share its GPUs. At most one of the two has a value other than its default.
struct GpuShare {
  int gpus_per_rank = 0;  ///< 0: any number
  int ranks_per_gpu = 1;
  bool is_in_step = false;  ///< Slurm may have bound the GPUs of each rank already
};

/// The entries that CUDA accepts, verbatim: numbers, "GPU-..." and "MIG-...". Like CUDA, ends at the first
/// negative number, empty entry or "NoDevFiles". Empty without a GPU.
std::vector<std::string> visible_entries(std::string_view visible);

/// The value of CUDA_VISIBLE_DEVICES for a rank; nullopt: unchanged. With `gpus_per_rank` all ranks of a node
/// see the GPUs of them all, since scripts select number LOCAL_RANK; of MIG devices local rank r sees those
/// from r * gpus_per_rank on. With `ranks_per_gpu` it is the one that the rank shares. Invalid when there are
/// too few.
Result<VisibleGpus> gpus_of_rank(const GpuShare& share, const VisibleGpus& visible,
                                 const RankPlacement& place);

/// The GPUs of this machine that the ranks may use, as entries of CUDA_VISIBLE_DEVICES: of `visible` those
/// that exist, else all of `gpus`, with the MIG devices of a divided one. Without `gpus` (no driver), every
/// entry of `visible` counts.
std::vector<std::string> usable_gpus(const VisibleGpus& visible, const std::vector<observe::GpuDevice>& gpus);

/// The number of GPUs that the ranks of this node need; 0: any number.
int needed_gpus(const Plan& plan);

/// Invalid if a plan on this machine needs more GPUs than `usable`; with a cure.
Status check_gpus(const Plan& plan, const VisibleGpus& visible, const std::vector<std::string>& usable);

}  // namespace stoker::rank
