// One optimizer step: passes over its batches, averaging between ranks, clipping, the optimizer, the mean of
// the weights. Used by the training loop. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/strong.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/data_parallel.h"
#include "torch/models/model.h"
#include "torch/optim/ema.h"
#include "torch/optim/gradients.h"
#include "torch/optim/optimizer.h"
#include "torch/trainer/learn/batch_tensors.h"
#include "torch/trainer/report/recorder.h"

namespace stoker::torch {

/// Which pass of how many in a step; one without train.accumulate.
struct Pass {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

class Learner {
 public:
  /// `model` must outlive it; `train` is copied. REQUIRES: train's values fit the model.
  Learner(const job::TrainOptions& train, Rank rank, Model& model, const BatchForm& form);

  /// Forward and backward over one batch. Gradients add up over a step's passes to their mean and are
  /// averaged over the ranks in the last one; figures add up in `row`, where row.step is the step under way.
  /// Collective.
  Status pass(DataParallel& parallel, Recorder& recorder, data::Batch& batch, const Pass& pass, StepRow& row);
  /// Whether the loss over the step's passes is finite: Invalid when not, but with fp16, which leaves such
  /// steps out.
  Status check_loss(const StepRow& row) const;
  /// Moves the weights after a step's last pass, and drops the gradients. Invalid when fp16 has overflowed in
  /// so many steps that no scale of the loss is left.
  Status update(DataParallel& parallel, const Rates& rates, StepRow& row);

  /// What happened in the last update that a person should know; nothing else.
  std::optional<std::string> news();

  /// What checkpoints hold beside the model: the optimizer's state, the mean of the weights, the loss's
  /// scale.
  NamedTensors state() const;
  /// Makes all of it that steps with such rates keep, so that a checkpoint can be read into it.
  void make_state(const Rates& rates) { optimizer_->make_state(rates); }
  /// While the answer lives the model holds the weights that are validated.
  std::unique_ptr<Ema::Lent> lend_validated();

 private:
  struct Scored;
  Result<Scored> forward(DataParallel& parallel, data::Batch& batch, const Pass& pass, std::int64_t step);

  const job::TrainOptions train_;
  const Rank rank_;
  Model& model_;
  const BatchForm form_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
  std::optional<LossScaler> scaler_;  ///< with fp16
  std::optional<std::string> news_;
};

}  // namespace stoker::torch
