#include "train/trainer/learn/rate_plan.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

job::TrainOptions options(job::ScheduleKind kind) {
  job::TrainOptions train;
  train.epochs = 4;
  train.optimizer.lr = 0.1;
  train.optimizer.momentum = 0.9;
  train.optimizer.beta1 = 0.8;
  train.schedule = {
      .kind = kind, .warmup = 0, .start_divisor = 25, .end_divisor = 1e4, .factor = 0.1, .drop_every = 2};
  return train;
}

constexpr TrainingLength kTen{.steps_per_epoch = 10};

TEST(RatePlan, drops_at_given_epochs_or_at_an_interval) {
  job::TrainOptions train = options(job::ScheduleKind::step);
  const RatePlan every(train, kTen);
  EXPECT_DOUBLE_EQ(every.at(19).lr, 0.1);
  EXPECT_DOUBLE_EQ(every.at(20).lr, 0.01);
  EXPECT_DOUBLE_EQ(every.at(39).lr, 0.01);
  train.schedule.drop_at = {0.5, 3};
  const RatePlan given(train, kTen);
  EXPECT_DOUBLE_EQ(given.at(4).lr, 0.1);
  EXPECT_DOUBLE_EQ(given.at(5).lr, 0.01);
  EXPECT_DOUBLE_EQ(given.at(30).lr, 0.001);
}

TEST(RatePlan, cosine_starts_at_the_peak_and_ends_near_the_final_rate) {
  job::TrainOptions train = options(job::ScheduleKind::cosine);
  train.schedule.end_lr = 0.01;
  const RatePlan plan(train, kTen);
  EXPECT_DOUBLE_EQ(plan.at(0).lr, 0.1);
  EXPECT_NEAR(plan.at(20).lr, 0.055, 1e-12);
  EXPECT_LT(plan.at(39).lr, 0.0102);
  EXPECT_DOUBLE_EQ(plan.at(1000).lr, plan.at(39).lr);
}

TEST(RatePlan, a_warm_up_rises_over_its_share_of_all_steps) {
  for (const auto kind : {job::ScheduleKind::cosine, job::ScheduleKind::step, job::ScheduleKind::constant}) {
    job::TrainOptions train = options(kind);
    train.schedule.warmup = 0.25;
    train.schedule.start_divisor = 10;
    const RatePlan plan(train, kTen);
    EXPECT_DOUBLE_EQ(plan.at(0).lr, 0.01);
    EXPECT_NEAR(plan.at(5).lr, 0.055, 1e-12);
    EXPECT_DOUBLE_EQ(plan.at(10).lr, 0.1);
  }
}

TEST(RatePlan, a_training_of_one_step_that_is_all_warm_up_has_a_rate) {
  job::TrainOptions train = options(job::ScheduleKind::cosine);
  train.epochs = 1;
  train.schedule.warmup = 1;
  EXPECT_DOUBLE_EQ(RatePlan(train, {.steps_per_epoch = 1}).at(0).lr, 0.1);
}

TEST(RatePlan, adaptive_optimizers_use_beta1_as_momentum) {
  job::TrainOptions train = options(job::ScheduleKind::constant);
  EXPECT_EQ(RatePlan(train, kTen).at(3).momentum, 0.9);
  train.optimizer.kind = job::OptimizerKind::adamw;
  EXPECT_EQ(RatePlan(train, kTen).at(3).momentum, 0.8);
  train.optimizer.kind = job::OptimizerKind::lars;
  EXPECT_EQ(RatePlan(train, kTen).at(3).momentum, 0.9);
}

TEST(RatePlan, scales_with_the_ranks_and_logs_it) {
  job::TrainOptions train = options(job::ScheduleKind::constant);
  const TrainingLength four{.steps_per_epoch = 10, .world_size = WorldSize(4)};
  EXPECT_EQ(RatePlan(train, four).scaling_text(), "");
  EXPECT_EQ(RatePlan(train, four).at(0).lr, 0.1);
  train.optimizer.lr_scaling = job::LrScaling::linear;
  EXPECT_DOUBLE_EQ(RatePlan(train, four).at(0).lr, 0.4);
  EXPECT_EQ(RatePlan(train, four).scaling_text(),
            "learning rate 0.1 x 4 ranks = 0.4 (train.optimizer.lr_scaling: linear)");
  train.optimizer.lr_scaling = job::LrScaling::square_root;
  train.schedule.kind = job::ScheduleKind::one_cycle;
  EXPECT_DOUBLE_EQ(RatePlan(train, four).peak(), 0.2);
  EXPECT_EQ(RatePlan(train, four).scaling_text(),
            "learning rate 0.1 x square root of 4 ranks = 0.2 (train.optimizer.lr_scaling: square-root)");
}

}  // namespace
}  // namespace stoker::train
