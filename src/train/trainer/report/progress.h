// Progress and speed of a training: sums up its steps and prints a line at intervals. Owned by a training,
// one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "job/job.h"
#include "train/trainer/environment.h"
#include "train/trainer/report/progress_line.h"
#include "train/trainer/report/recorder.h"
#include "train/trainer/trainer_log.h"

namespace stoker::train {

class ProgressReporter {
 public:
  /// `train` and `log` must outlive it.
  ProgressReporter(const job::TrainOptions& train, const RankEnvironment& environment, std::string_view unit,
                   TrainerLog& log);

  /// Adds step `in_epoch` of `per_epoch`. Rank 0 prints a line every `train.print_every` steps and at the end
  /// of an epoch.
  void step(const StepRow& row, std::int64_t in_epoch, std::int64_t per_epoch);

  /// All steps of this rank since its start.
  const StepTotals& attempt() const { return attempt_; }

 private:
  const job::TrainOptions& train_;
  const int world_size_;
  const bool is_reporting_;
  const std::string_view unit_;
  TrainerLog& log_;
  StepTotals attempt_;
  StepTotals since_last_line_;
};

}  // namespace stoker::train
