// How many copies of a command start, and on how many nodes: computed from the options of srun and mpirun and
// from the job's request. Internal to this room. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "script_lint/script.h"

namespace stoker::script_lint {

/// The values of $SLURM_NNODES and similar variables; nothing if unknown.
struct JobCounts {
  std::optional<std::uint64_t> nodes;
  std::optional<std::uint64_t> tasks;
  std::optional<std::uint64_t> tasks_per_node;
  std::optional<std::uint64_t> gpus_per_node;
};

/// The counts of a batch script's #SBATCH lines.
JobCounts counts_of(const SlurmRequest& request);

/// A number, a product such as "$((SLURM_NNODES * 4))", or a variable with one of the counts.
std::optional<std::uint64_t> count_value(std::string_view text, const JobCounts& counts);

/// Copies of one command that start together, one per task.
struct TaskLayout {
  std::optional<std::uint64_t> tasks = 1;  ///< nothing if unknown
  std::optional<std::uint64_t> nodes = 1;
  std::string starter;  ///< "srun", "mpirun"; "" for the batch script itself

  /// The largest number of copies on one node.
  std::optional<std::uint64_t> tasks_per_node() const;
  bool has_copies() const { return tasks.value_or(1) > 1; }
};

/// The value of the first of `names` in `words`: "--nodes=2", "--nodes 2", "-N 2", "-N2".
std::optional<std::string> option_value(const std::vector<std::string>& words,
                                        std::initializer_list<std::string_view> names);

/// The layout of the tasks that srun or mpirun starts in this job.
TaskLayout layout_of(const ProgramCall& launcher, const JobCounts& counts);

}  // namespace stoker::script_lint
