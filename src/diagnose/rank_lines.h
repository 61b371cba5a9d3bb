// What the ranks of an attempt printed at their start: "rank 0/4", and lines of training progress. Shows
// whether one run was several trainings, and whether its ranks ever connected. Used by `stoker explain`.
// Thread-safe: no state.
#pragma once

#include <vector>

#include "base/finding.h"
#include "diagnose/failure.h"

namespace stoker::diagnose {

/// How the output of an attempt is divided among its logs.
enum class LogLayout {
  log_per_process,  ///< one log for each process that Stoker started
  shared_log,       ///< one log for all processes, as of a batch script
};

struct RankLines {
  /// Lines of different processes that all have rank 0, at most three; fewer than two prove nothing.
  std::vector<Evidence> rank_zero;
  /// Whether a log has a line with an epoch, a step or a loss, or is too long to rule it out.
  bool has_progress = false;
};

/// Reads the first MiB of each log, of at most 64. In a shared log, equal lines count as different processes.
/// Unreadable logs count as empty.
RankLines read_rank_lines(const std::vector<FailedLog>& logs, LogLayout layout);

}  // namespace stoker::diagnose
