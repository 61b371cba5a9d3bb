// The learning rates of a whole training, from the job's words. Used by the training loop. Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/strong.h"
#include "job/job.h"
#include "torch/optim/schedule.h"

namespace stoker::torch {

/// How long the training is, and on how many ranks.
struct PlanFacts {
  std::int64_t steps_per_epoch = 1;
  WorldSize world_size{1};
};

/// The rates of every step of a training.
class RatePlan {
 public:
  RatePlan(const job::TrainOptions& train, const PlanFacts& facts);
  /// For optimizer step `index`, from 0; what lies behind the plan's end uses its last step's.
  Rates at(std::int64_t index) const;
  /// The schedule's highest rate, after train.optimizer.lr_scaling.
  double peak() const { return peak_; }
  /// "learning rate 0.1 x 2 ranks = 0.2 (train.optimizer.lr_scaling: linear)", or "" where it is not scaled.
  std::string scaling_text() const;

 private:
  const job::ScheduleOptions schedule_;
  const job::OptimizerOptions optimizer_;
  const WorldSize world_size_;
  const double peak_;
  const double momentum_;  ///< or beta1
  std::int64_t total_steps_ = 1;
  OneCycle one_cycle_;
  CosineDecay cosine_;
  StepDecay steps_;
};

}  // namespace stoker::torch
