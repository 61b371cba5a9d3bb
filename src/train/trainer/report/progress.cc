#include "train/trainer/report/progress.h"

#include <algorithm>

namespace stoker::train {

ProgressReporter::ProgressReporter(const job::TrainOptions& train, const RankEnvironment& environment,
                                   std::string_view unit, TrainerLog& log)
    : train_(train),
      world_size_(environment.world_size.value),
      is_reporting_(environment.rank.value == 0 && train.print_every > 0),
      unit_(unit),
      log_(log) {}

void ProgressReporter::step(const StepRow& row, std::int64_t in_epoch, std::int64_t per_epoch) {
  attempt_.add(row);
  if (!is_reporting_) return;
  since_last_line_.add(row);
  if (in_epoch % train_.print_every != 0 && in_epoch != per_epoch) return;
  std::int64_t left = train_.epochs * per_epoch - row.epoch * per_epoch - in_epoch;
  if (train_.steps) left = std::min(left, static_cast<std::int64_t>(*train_.steps) - row.step);
  const double per_step_s = attempt_.seconds / static_cast<double>(attempt_.steps);
  log_.progress(
      progress_line({.epoch = row.epoch + 1,
                     .epochs = train_.epochs,
                     .step = in_epoch,
                     .steps = per_epoch,
                     .world_size = world_size_,
                     .unit = unit_,
                     .seconds_left = per_step_s * static_cast<double>(std::max<std::int64_t>(0, left)),
                     .totals = since_last_line_}));
  since_last_line_ = {};
}

}  // namespace stoker::train
