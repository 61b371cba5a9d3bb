// Cores, GPUs and memory of this machine, divided among tasks. Used by worker.cc. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "farm/list/task_list.h"
#include "slurm/allocation.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::farm {

/// What this process may use.
struct MachineResources {
  std::vector<int> cores;
  std::vector<std::string> gpus;  ///< as in CUDA_VISIBLE_DEVICES
  ByteCount memory;
};
/// The cores that this process is bound to, or its share of a Slurm step; the GPUs of CUDA_VISIBLE_DEVICES,
/// or all; the memory of the machine, its cgroup or its Slurm job.
MachineResources machine_resources(const slurm::Lookup& env);

/// Whether the machine has what a task needs. Invalid with the first thing that is missing.
Status check_needs(const TaskNeeds& needs, const MachineResources& machine);

/// What a running task uses.
struct Grant {
  std::vector<int> cores;
  std::vector<std::uint32_t> gpus;  ///< indices in MachineResources::gpus
  ByteCount memory;
};

class NodeResources {
 public:
  /// Up to `at_once` tasks at the same time; 0: as many as there are cores. With more tasks of `usual` needs
  /// than fit, cores are shared.
  NodeResources(MachineResources machine, std::size_t at_once, const TaskNeeds& usual);

  /// nullopt if something is in use.
  std::optional<Grant> take(const TaskNeeds& needs);
  void give_back(const Grant& grant);
  /// Tasks of usual needs that run at the same time.
  std::size_t slots() const;
  const MachineResources& machine() const { return machine_; }

 private:
  MachineResources machine_;
  std::vector<bool> core_in_use_;  // more than there are cores when they are shared
  std::vector<bool> gpu_in_use_;
  std::size_t cores_free_;
  std::size_t gpus_free_;
  std::uint64_t memory_free_;
  std::size_t tasks_ = 0;
  std::size_t at_once_;
  TaskNeeds usual_;
};

}  // namespace stoker::farm
