// Finds the command of a script after its setup: one command, or lines for a separate file. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "draft/draft_internal.h"
#include "draft/words.h"
#include "script_lint/script.h"

namespace stoker::draft {

/// How the command is launched.
enum class LaunchMode {
  once,      ///< the batch script itself
  ranks,     ///< srun or mpirun
  torchrun,  ///< torchrun on each node
};

struct Work {
  LaunchMode launch = LaunchMode::once;
  std::optional<std::uint64_t> per_node;  ///< options of the launcher
  std::optional<std::uint64_t> all;
  std::vector<std::string> words;  ///< the command without a shell; empty: `lines` in a separate file
  std::string lines;
  std::uint64_t arguments = 0;  ///< positional arguments that `lines` use: $1 to $N
};

/// Finds the command: the unconverted units, as one command or as lines.
Work find_work(const Script& script, const WordExpander& words, const std::vector<Unit>& units,
               const std::vector<bool>& converted, JobFileDraft& job_file);

}  // namespace stoker::draft
