// How far a training is and how fast: sums up its steps and tells a person now and then. Made by a training,
// used by its one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "job/job.h"
#include "torch/trainer/environment.h"
#include "torch/trainer/report/progress_line.h"
#include "torch/trainer/report/recorder.h"
#include "torch/trainer/report/voice.h"

namespace stoker::torch {

class Progress {
 public:
  /// `train` and `voice` must outlive it.
  Progress(const job::TrainOptions& train, const RankEnvironment& environment, std::string_view unit,
           Voice& voice);

  /// A step is done, the `in_epoch`-th of `per_epoch`. On rank 0 a line every `train.print_every` steps and
  /// at the end of an epoch.
  void step(const StepRow& row, std::int64_t in_epoch, std::int64_t per_epoch);

  /// All steps of this rank since it started.
  const Stretch& attempt() const { return attempt_; }

 private:
  const job::TrainOptions& train_;
  const int world_size_;
  const bool is_told_;
  const std::string_view unit_;
  Voice& voice_;
  Stretch attempt_;
  Stretch since_line_;
};

}  // namespace stoker::torch
