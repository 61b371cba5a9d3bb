// Learning rates of a training from its job options. Used by the training loop. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "job/job.h"
#include "stoker/schedule.h"
#include "stoker/strong.h"

namespace stoker::train {

/// Length of a training and its number of ranks.
struct TrainingLength {
  std::int64_t steps_per_epoch = 1;
  WorldSize world_size{1};
};

/// The rates of every step of a training.
class RatePlan {
 public:
  RatePlan(const job::TrainOptions& train, const TrainingLength& facts);
  /// Rates of optimizer step `index`, from 0. Steps beyond the end use the last rates.
  Rates at(std::int64_t index) const;
  /// The highest rate, after train.optimizer.lr_scaling.
  double peak() const { return peak_; }
  /// "learning rate 0.1 x 2 ranks = 0.2 (train.optimizer.lr_scaling: linear)", or "" without scaling.
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

}  // namespace stoker::train
