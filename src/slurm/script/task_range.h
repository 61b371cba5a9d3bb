// One element of an --array specification: "3", "1-7", "0-15:4". Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::slurm {

struct TaskRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< at least `first`; 32 bits, as in Slurm
  std::uint64_t step = 1;  ///< at least 1
};

/// Nullopt for a malformed element.
std::optional<TaskRange> read_task_range(std::string_view piece);

}  // namespace stoker::slurm
