// Progress and speed of a run, from the last lines recorded by its trainer. Reads only the ends of files, so
// that listing many long runs stays fast. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "record/points/points.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::observe {

/// Values from rank 0's metrics; empty if the command records none.
struct RunProgress {
  std::optional<std::int64_t> epoch;  ///< of the last step, counted from 0
  std::optional<std::int64_t> step;   ///< number of completed steps
  std::optional<double> loss;         ///< of the last step
  /// Over the last steps, by rank 0's clock, assuming that every rank is as fast as rank 0.
  std::optional<double> samples_per_s;
  std::optional<double> validation_top1;  ///< fraction of 1, last validated epoch of this attempt
  /// Of a program that logs metrics: the last value of each, over its ranks. `step` and `loss` are then the
  /// highest step and the main metric.
  std::vector<record::LastValue> metrics;
  std::optional<record::LastValue> main_metric;  ///< the loss, if one of them is
};

/// Of one attempt. Absent or damaged files give empty values.
RunProgress read_progress(const record::Attempt& attempt, int world_size);

}  // namespace stoker::observe
