// Loss and accuracy of a step. On a GPU they are summed there and read later, so that no step waits for them.
// Used by the learner and the training loop. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "train/device/stream.h"
#include "train/trainer/report/recorder.h"

namespace stoker::train {

/// What a pass adds.
struct PassMetrics {
  at::Tensor loss;    ///< mean, without dimensions
  at::Tensor scores;  ///< rows x classes, float32, contiguous
  at::Tensor labels;  ///< one per row
  std::int64_t samples = 0;
};

/// The loss scale of fp16 after a step.
struct ScaleOutcome {
  bool has_overflowed = false;  ///< the step had no effect
  double scale = 1;
};

/// Metrics of one step, being copied to the host.
class PendingMetrics {
 public:
  /// Already in the row.
  PendingMetrics() = default;
  PendingMetrics(at::Tensor sums, StreamPoint done) : sums_(std::move(sums)), done_(std::move(done)) {}

  bool is_ready() const { return !done_ || done_->is_reached(); }
  /// Waits, and puts them into the row. The outcome is empty without fp16.
  std::optional<ScaleOutcome> finish(StepRow& row);

 private:
  at::Tensor sums_;  ///< page-locked
  std::optional<StreamPoint> done_;
};

class MetricSums {
 public:
  explicit MetricSums(at::Device device);

  /// Adds a pass to `row`, or to the sums on the device. The samples are added to the row in any case.
  void add(StepRow& row, const PassMetrics& pass);
  /// Adds the loss scale: one float32 each.
  void add_scale(const at::Tensor& overflowed, const at::Tensor& scale);
  /// After the step's last pass: starts the copy to the host, and begins a new step.
  PendingMetrics take();

 private:
  const at::Device device_;
  at::Tensor sums_;  ///< float64 on the device: loss, top-1, top-5 of the samples; overflowed, scale
};

}  // namespace stoker::train
