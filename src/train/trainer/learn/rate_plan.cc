#include "train/trainer/learn/rate_plan.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/language/counted.h"

namespace stoker::train {

namespace {

double lr_factor(job::LrScaling scaling, WorldSize world_size) {
  const double ranks = world_size.value;
  if (scaling == job::LrScaling::linear) return ranks;
  return scaling == job::LrScaling::square_root ? std::sqrt(ranks) : 1;
}

bool has_betas(const job::OptimizerOptions& optimizer) {
  return optimizer.kind == job::OptimizerKind::adamw || optimizer.kind == job::OptimizerKind::lamb;
}

// First steps with a lower rate.
std::vector<std::int64_t> milestones_of(const job::TrainOptions& train, std::int64_t steps_per_epoch) {
  if (train.schedule.kind != job::ScheduleKind::step) return {};
  std::vector<double> epochs = train.schedule.drop_at;
  if (epochs.empty()) {
    for (std::uint32_t epoch = train.schedule.drop_every; epoch < train.epochs;
         epoch += train.schedule.drop_every)
      epochs.push_back(epoch);
  }
  std::vector<std::int64_t> milestones;
  for (double epoch : epochs)
    milestones.push_back(static_cast<std::int64_t>(std::ceil(epoch * static_cast<double>(steps_per_epoch))));
  return milestones;
}

}  // namespace

RatePlan::RatePlan(const job::TrainOptions& train, const TrainingLength& facts)
    : schedule_(train.schedule),
      optimizer_(train.optimizer),
      world_size_(facts.world_size),
      peak_(train.optimizer.lr * lr_factor(train.optimizer.lr_scaling, facts.world_size)),
      momentum_(has_betas(train.optimizer) ? train.optimizer.beta1 : train.optimizer.momentum) {
  total_steps_ = std::max<std::int64_t>(1, train.epochs * facts.steps_per_epoch);
  one_cycle_ = {.peak_lr = peak_,
                .total_steps = total_steps_,
                .warmup = schedule_.warmup,
                .start_divisor = schedule_.start_divisor,
                .end_divisor = schedule_.end_divisor,
                .annealing = schedule_.anneal,
                .momentum_low = schedule_.momentum_low,
                .momentum_high = schedule_.momentum_high};
  const WarmUp warm_up{
      .steps = std::min(total_steps_ - 1, static_cast<std::int64_t>(std::llround(
                                              schedule_.warmup * static_cast<double>(total_steps_)))),
      .start_divisor = schedule_.start_divisor};
  cosine_ = {.peak_lr = peak_, .end_lr = schedule_.end_lr, .total_steps = total_steps_, .warm_up = warm_up};
  steps_ = {.lr = peak_,
            .factor = schedule_.factor,
            .milestones = milestones_of(train, facts.steps_per_epoch),
            .warm_up = warm_up};
}

Rates RatePlan::at(std::int64_t index) const {
  const std::int64_t step = std::clamp<std::int64_t>(index, 0, total_steps_ - 1);
  switch (schedule_.kind) {
    case job::ScheduleKind::one_cycle: {
      Rates rates = one_cycle_.at(step);
      if (!schedule_.cycle_momentum) rates.momentum = momentum_;
      return rates;
    }
    case job::ScheduleKind::cosine:
      return {cosine_.at(step), momentum_};
    case job::ScheduleKind::step:
    case job::ScheduleKind::constant:
      break;
  }
  return {steps_.at(step), momentum_};
}

std::string RatePlan::scaling_text() const {
  if (optimizer_.lr_scaling == job::LrScaling::none) return "";
  const bool is_linear = optimizer_.lr_scaling == job::LrScaling::linear;
  return format(
      "learning rate {} x {} = {:.6g} (train.optimizer.lr_scaling: {})", optimizer_.lr,
      (is_linear ? "" : "square root of ") + counted(static_cast<std::uint64_t>(world_size_.value), "rank"),
      peak_, to_text(optimizer_.lr_scaling));
}

}  // namespace stoker::train
