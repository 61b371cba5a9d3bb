// One optimizer step: forward and backward passes, all-reduce, clipping, optimizer, EMA. Used by the training
// loop. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "job/job.h"
#include "stoker/data_parallel.h"
#include "stoker/ema.h"
#include "stoker/gradients.h"
#include "stoker/model.h"
#include "stoker/optimizer.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "train/trainer/learn/batch_upload.h"
#include "train/trainer/learn/metric_sums.h"
#include "train/trainer/learn/step_graph.h"
#include "train/trainer/report/recorder.h"

namespace stoker::train {

/// Index and number of passes in a step; one pass without train.accumulate.
struct AccumulationStep {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

class Learner {
 public:
  /// `model` must outlive it; `train` is copied. REQUIRES: the values of `train` fit the model, which is on
  /// `device`.
  Learner(const job::TrainOptions& train, Rank rank, Model& model, at::Device device);

  /// Whether gradients are averaged with other ranks, and how: before the first step. A graph is not captured
  /// until it is known.
  void allow_graphs(const GraphSituation& situation);

  /// Forward and backward pass over one batch. Gradients accumulate to their mean over the step's passes; the
  /// last pass all-reduces them. Adds metrics to `row`, where row.step is the current step. Collective.
  Status forward_backward(DataParallel& parallel, Recorder& recorder, const DeviceBatch& batch,
                          const AccumulationStep& pass, StepRow& row);
  /// Invalid if the loss of the step is not finite; ok with fp16, which skips such steps. REQUIRES: the row's
  /// metrics are known.
  Status check_loss(const StepRow& row) const;
  /// Updates the weights after a step's last pass and resets the gradients.
  Status update(DataParallel& parallel, const Rates& rates, StepRow& row);

  /// A whole step in a graph, in place of forward_backward() and update(). False: it must run without. The
  /// phases of such a step are not timed. Collective.
  Result<bool> run_in_graph(DataParallel& parallel, const DeviceBatch& batch, const Rates& rates,
                            StepRow& row);

  /// Metrics of the step, once after its update.
  PendingMetrics take_metrics() { return metrics_.take(); }
  /// Takes note of the loss scale after a step. Invalid if fp16 overflowed until it reached its minimum.
  Status check_scale(const StepRow& row, const ScaleOutcome& outcome);

  /// A notice about the last steps, if any.
  std::optional<std::string> notice();

  /// State for checkpoints besides the model: optimizer, EMA, loss scale.
  NamedTensors state() const;
  /// Creates the optimizer state of steps with these rates, so that a checkpoint can be loaded into it.
  void make_state(const Rates& rates) { optimizer_->make_state(rates); }
  /// While the result exists, the model holds the weights to validate.
  std::unique_ptr<Ema::Scope> use_ema_weights();

 private:
  struct ForwardResult;
  Result<ForwardResult> forward(DataParallel& parallel, const BatchTensors& batch,
                                const AccumulationStep& pass, std::int64_t step);
  void update_weights(DataParallel& parallel, const Rates& rates, std::int64_t step);
  void step_optimizer(const Rates& rates);
  void set_device_rates(const Rates& rates);
  Status capture_body(DataParallel& parallel, const BatchTensors& batch, const Rates& rates, StepRow& row);

  const job::TrainOptions train_;
  const Rank rank_;
  Model& model_;
  const at::Device device_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
  std::optional<GradScaler> scaler_;  ///< with fp16
  MetricSums metrics_;
  std::optional<StepGraph> graph_;  ///< empty until allow_graphs()
  DeviceRates rates_;               ///< on a GPU
  std::optional<std::string> notice_;
};

}  // namespace stoker::train
