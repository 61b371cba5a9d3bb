// How far a run is and how fast, from the last lines of what its trainer recorded. Reads the end of files
// only, so that a listing of many long runs stays quick. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "record/run_folder.h"

namespace stoker::observe {

/// What rank 0's metrics say; empty values where the command records none.
struct RunProgress {
  std::optional<std::int64_t> epoch;  ///< of the last step, counted from 0
  std::optional<std::int64_t> step;   ///< steps done
  std::optional<double> loss;         ///< of the last step
  /// Over the last steps, by rank 0's clock and as if every rank did what rank 0 did.
  std::optional<double> samples_per_s;
  std::optional<double> validation_top1;  ///< fraction of 1, last validated epoch of this attempt
};

/// Of one attempt. Absent or damaged files give empty values.
RunProgress read_progress(const record::Attempt& attempt, int world_size);

}  // namespace stoker::observe
