// Decides whether the steps of a training are captured as a CUDA graph, and when. Used by the learner. One
// object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "job/train_options.h"
#include "train/device/cuda_part.h"
#include "train/trainer/learn/batch_tensors.h"

namespace stoker::train {

/// The rest of a training that decides about graphs.
struct GraphSituation {
  at::Device device{at::kCPU};
  bool has_peers = false;             ///< gradients are averaged with other ranks
  bool are_gradients_staged = false;  ///< through host memory
};

/// Why steps cannot be captured: "train.accumulate is 4". Empty: they can be tried.
std::string capture_obstacle(const job::TrainOptions& train, const GraphSituation& situation);

class StepGraph {
 public:
  /// `obstacle` as from capture_obstacle(): such steps are never captured.
  StepGraph(const job::TrainOptions& train, const GraphSituation& situation);

  /// Whether steps may be captured now or later, so that their optimizer must read its rates on the device.
  bool is_wanted() const { return is_wanted_; }
  /// Whether a step with this batch runs in the graph: all of its size, after the warm-up.
  bool accepts(const BatchTensors& batch) const;
  /// Counts a step that was not captured.
  void count_eager(const BatchTensors& batch);
  /// Copies the batch to the graph's memory and launches the step: `body`, called with that memory, which is
  /// captured in the first call. Throws libtorch's exceptions, and in the first call the exceptions of
  /// `body`.
  void run(const BatchTensors& batch, const std::function<void(const BatchTensors&)>& body);
  /// Ends all attempts.
  void give_up();

 private:
  bool is_wanted_;
  const std::int64_t warm_up_;
  std::int64_t eager_steps_ = 0;
  std::vector<std::int64_t> shape_;  ///< of the batches that are captured: the first one's
  BatchTensors memory_;
  std::unique_ptr<CapturedGraph> graph_;
};

}  // namespace stoker::train
