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
#include "stoker/loader.h"
#include "stoker/model.h"
#include "stoker/optimizer.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "train/trainer/learn/batch_tensors.h"
#include "train/trainer/report/recorder.h"

namespace stoker::train {

/// Index and number of passes in a step; one pass without train.accumulate.
struct AccumulationStep {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

class Learner {
 public:
  /// `model` must outlive it; `train` is copied. REQUIRES: the values of `train` fit the model.
  Learner(const job::TrainOptions& train, Rank rank, Model& model, const BatchForm& form);

  /// Forward and backward pass over one batch. Gradients accumulate to their mean over the step's passes; the
  /// last pass all-reduces them. Adds metrics to `row`, where row.step is the current step. Collective.
  Status forward_backward(DataParallel& parallel, Recorder& recorder, loader::Batch& batch,
                          const AccumulationStep& pass, StepRow& row);
  /// Invalid if the loss of the step is not finite; ok with fp16, which skips such steps.
  Status check_loss(const StepRow& row) const;
  /// Updates the weights after a step's last pass and resets the gradients. Invalid if fp16 overflowed until
  /// the loss scale reached its minimum.
  Status update(DataParallel& parallel, const Rates& rates, StepRow& row);

  /// A notice about the last update, if any.
  std::optional<std::string> notice();

  /// State for checkpoints besides the model: optimizer, EMA, loss scale.
  NamedTensors state() const;
  /// Creates the optimizer state of steps with these rates, so that a checkpoint can be loaded into it.
  void make_state(const Rates& rates) { optimizer_->make_state(rates); }
  /// While the result exists, the model holds the weights to validate.
  std::unique_ptr<Ema::Scope> use_ema_weights();

 private:
  struct ForwardResult;
  Result<ForwardResult> forward(DataParallel& parallel, loader::Batch& batch, const AccumulationStep& pass,
                                std::int64_t step);

  const job::TrainOptions train_;
  const Rank rank_;
  Model& model_;
  const BatchForm form_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
  std::optional<GradScaler> scaler_;  ///< with fp16
  std::optional<std::string> notice_;
};

}  // namespace stoker::train
