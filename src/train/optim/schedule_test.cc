#include "stoker/schedule.h"

#include <vector>

#include <gtest/gtest.h>

#include "train/test_golden.h"

namespace stoker::train {
namespace {

// tests/golden/lr_schedules.json: the rate of each optimizer step from torch.optim.lr_scheduler.OneCycleLR.
void expect_golden(const OneCycle& schedule, std::string_view name) {
  const auto row = golden_row(golden("lr_schedules.json"), name);
  const auto lr = row.at("lr").get<std::vector<double>>();
  const auto momentum = row.at("momentum_or_beta1").get<std::vector<double>>();
  ASSERT_EQ(static_cast<std::int64_t>(lr.size()), schedule.total_steps);
  for (std::int64_t i = 0; i < schedule.total_steps; ++i) {
    const Rates rates = schedule.at(i);
    EXPECT_EQ(rates.lr, lr[static_cast<std::size_t>(i)]) << name << " step " << i;
    EXPECT_EQ(rates.momentum, momentum[static_cast<std::size_t>(i)]) << name << " step " << i;
  }
}

TEST(OneCycle, cosine_matches_pytorch) {
  expect_golden({.peak_lr = 0.4, .total_steps = 30}, "OneCycleLR(max_lr=0.4,total_steps=30) cos");
}

TEST(OneCycle, linear_with_custom_divisors_matches_pytorch) {
  expect_golden({.peak_lr = 0.4,
                 .total_steps = 30,
                 .warmup = 0.2,
                 .start_divisor = 10,
                 .end_divisor = 100,
                 .annealing = Annealing::linear},
                "OneCycleLR(max_lr=0.4,total_steps=30,pct_start=0.2,anneal=linear,div=10,final=100)");
}

TEST(OneCycle, a_peak_between_two_steps_matches_pytorch) {
  expect_golden({.peak_lr = 0.01, .total_steps = 17}, "OneCycleLR(max_lr=0.01,total_steps=17) AdamW");
}

TEST(OneCycle, a_training_of_one_step_ends_at_the_last_rate) {
  const Rates rates = OneCycle{.peak_lr = 1, .total_steps = 1}.at(0);
  EXPECT_DOUBLE_EQ(rates.lr, 1.0 / 25 / 1e4);
  EXPECT_DOUBLE_EQ(rates.momentum, 0.95);
}

TEST(OneCycle, a_warm_up_of_one_step_is_at_the_peak) {
  const OneCycle cycle{.peak_lr = 0.2, .total_steps = 10, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(cycle.at(0).lr, 0.2);
  EXPECT_DOUBLE_EQ(cycle.at(0).momentum, 0.85);
  EXPECT_LT(cycle.at(1).lr, 0.2);
  EXPECT_DOUBLE_EQ(cycle.at(9).lr, 0.2 / 25 / 1e4);
  EXPECT_DOUBLE_EQ((OneCycle{.peak_lr = 0.2, .total_steps = 1, .warmup = 1}.at(0).lr), 0.2);
}

// PyTorch computes these rates incrementally: the closed forms differ in the last digits.
template <typename Schedule>
void expect_near_golden(const Schedule& schedule, std::string_view name, std::size_t steps) {
  const auto lr = golden_row(golden("lr_schedules.json"), name).at("lr").get<std::vector<double>>();
  ASSERT_GE(lr.size(), steps);
  for (std::size_t i = 0; i < steps; ++i) {
    EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(i)), lr[i], 1e-12 * (lr[i] + 1e-3))
        << name << " step " << i;
  }
}

TEST(CosineDecay, matches_pytorch) {
  expect_near_golden(CosineDecay{.peak_lr = 0.1, .total_steps = 30}, "CosineAnnealingLR(T_max=30,eta_min=0)",
                     31);
}

TEST(CosineDecay, with_a_final_rate_matches_pytorch) {
  expect_near_golden(CosineDecay{.peak_lr = 0.1, .end_lr = 1e-3, .total_steps = 20},
                     "CosineAnnealingLR(T_max=20,eta_min=1e-3)", 21);
}

TEST(CosineDecay, after_a_warm_up_matches_pytorch) {
  expect_near_golden(
      CosineDecay{.peak_lr = 0.1, .total_steps = 30, .warm_up = {.steps = 5, .start_divisor = 100}},
      "SequentialLR([LinearLR(0.01,5),CosineAnnealingLR(25,eta_min=0)],[5])", 30);
}

TEST(StepDecay, at_equal_intervals_matches_pytorch) {
  expect_near_golden(StepDecay{.lr = 0.1, .factor = 0.1, .milestones = {10, 20, 30}},
                     "StepLR(step_size=10,gamma=0.1)", 35);
}

TEST(StepDecay, at_given_steps_matches_pytorch) {
  expect_near_golden(StepDecay{.lr = 0.1, .factor = 0.2, .milestones = {5, 12, 20}},
                     "MultiStepLR([5,12,20],gamma=0.2)", 25);
}

TEST(StepDecay, with_a_warm_up_and_no_drops_matches_pytorch) {
  expect_near_golden(StepDecay{.lr = 0.1, .warm_up = {.steps = 5, .start_divisor = 100}},
                     "LinearLR(start_factor=0.01,total_iters=5)", 10);
}

}  // namespace
}  // namespace stoker::train
