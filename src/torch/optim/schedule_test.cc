#include "torch/optim/schedule.h"

#include <vector>

#include <gtest/gtest.h>

#include "torch/test_golden.h"

namespace stoker::torch {
namespace {

// tests/golden/lr_schedules.json: what torch.optim.lr_scheduler.OneCycleLR gave each optimizer step.
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

TEST(OneCycle, cosine_is_pytorchs) {
  expect_golden({.peak_lr = 0.4, .total_steps = 30}, "OneCycleLR(max_lr=0.4,total_steps=30) cos");
}

TEST(OneCycle, linear_with_other_divisors_is_pytorchs) {
  expect_golden({.peak_lr = 0.4,
                 .total_steps = 30,
                 .warmup = 0.2,
                 .start_divisor = 10,
                 .end_divisor = 100,
                 .annealing = Annealing::linear},
                "OneCycleLR(max_lr=0.4,total_steps=30,pct_start=0.2,anneal=linear,div=10,final=100)");
}

TEST(OneCycle, a_peak_between_two_steps_is_pytorchs) {
  expect_golden({.peak_lr = 0.01, .total_steps = 17}, "OneCycleLR(max_lr=0.01,total_steps=17) AdamW");
}

TEST(OneCycle, a_training_of_one_step_ends_at_the_last_rate) {
  const Rates rates = OneCycle{.peak_lr = 1, .total_steps = 1}.at(0);
  EXPECT_DOUBLE_EQ(rates.lr, 1.0 / 25 / 1e4);
  EXPECT_DOUBLE_EQ(rates.momentum, 0.95);
}

}  // namespace
}  // namespace stoker::torch
