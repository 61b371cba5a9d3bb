// A piece of what --array asks for: "3", "1-7", "0-15:4". Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::slurm {

struct TaskRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< not before `first`, and of 32 bits, as Slurm's
  std::uint64_t step = 1;  ///< at least 1
};

/// Nothing for what is no such piece.
std::optional<TaskRange> read_task_range(std::string_view piece);

}  // namespace stoker::slurm
