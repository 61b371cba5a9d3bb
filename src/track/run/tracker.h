// A receiver of a run's points: MLflow, or files for TensorBoard, W&B, Comet and CSV. Implementations belong
// to one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "stoker/status.h"
#include "track/run/point_reader.h"
#include "track/run/track_state.h"
#include "track/run/tracked_run.h"

namespace stoker::track {

/// Something that the user should know, in one line.
using NoteSink = std::function<void(const std::string& line)>;

/// All functions fail with Unavailable, Timeout or NoSpace where a later call may succeed; any other error is
/// final. They store what they know about the tracker in TrackState::values.
class Tracker {
 public:
  virtual ~Tracker() = default;

  /// Makes the run known to the tracker, with its params. Called before the first delivery of a process.
  virtual Status begin(const TrackedRun& run, TrackState& state) = 0;
  /// Returns once the points are stored. `is_repeated`: a killed process may have delivered parts of the
  /// batch.
  virtual Status deliver(const PointBatch& batch, bool is_repeated, TrackState& state) = 0;
  /// All points are delivered. The run may continue, even if it has ended: another attempt may follow.
  virtual Status end(const TrackedRun& run, TrackState& state) = 0;
  /// The state after end() is stored: what it replaces can be removed.
  virtual void clean_up(const TrackState&) {}

  /// Points of a batch.
  virtual std::size_t batch_limit() const = 0;
  /// Whether a batch is recorded as pending before its delivery.
  virtual bool needs_pending() const = 0;
};

}  // namespace stoker::track
