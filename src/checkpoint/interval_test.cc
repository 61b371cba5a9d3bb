#include "checkpoint/interval.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::checkpoint {
namespace {

using namespace std::chrono_literals;

CheckpointCosts facts(double stall_s, double write_s, Duration mtbf) {
  CheckpointCosts f;
  f.stall_s = stall_s;
  f.write_s = write_s;
  f.is_measured = true;
  f.mtbf = mtbf;
  return f;
}

double seconds(const Interval& interval) { return Seconds(interval.every).count(); }

TEST(DalyInterval, is_youngs_for_cheap_saves_and_the_mean_time_for_expensive_ones) {
  EXPECT_NEAR(daly_interval(1, 86400), std::sqrt(2 * 86400.0), 1);
  EXPECT_NEAR(daly_interval(60, 86400), 3180.06, 0.01);
  EXPECT_EQ(daly_interval(10, 5), 5);
  EXPECT_EQ(daly_interval(0, 100), 0);
}

// The overhead that the interval minimizes: saving, and on a failure the loss of half an interval.
double overhead(double interval, double cost, double mtbf) { return cost / interval + interval / (2 * mtbf); }

TEST(DalyInterval, costs_less_than_shorter_and_longer_intervals) {
  for (const double cost : {0.05, 1.0, 30.0}) {
    const double best = daly_interval(cost, 86400);
    EXPECT_LT(overhead(best, cost, 86400), overhead(best / 2, cost, 86400));
    EXPECT_LT(overhead(best, cost, 86400), overhead(best * 2, cost, 86400));
  }
}

TEST(ChooseInterval, weighs_the_stall_against_failures) {
  const Interval interval = choose_interval(facts(0.05, 0.9, 24h));
  EXPECT_NEAR(seconds(interval), 92.9, 0.2);
  EXPECT_EQ(interval.reason,
            "stall 50 ms, write time 0.9 s, one failure per 1 d 00 h: Daly's optimum 1 min 33 s");
  EXPECT_GT(seconds(choose_interval(facts(0.5, 0.9, 24h))), 200);
  EXPECT_LT(seconds(choose_interval(facts(0.5, 0.9, 1h))), 70);
}

TEST(ChooseInterval, is_at_least_the_save_time_and_ten_seconds) {
  const Interval slow = choose_interval(facts(0.05, 300, 24h));
  EXPECT_NEAR(seconds(slow), 300.05, 0.01);
  EXPECT_THAT(slow.reason, testing::EndsWith(", but at least the time of one save"));
  const Interval quick = choose_interval(facts(0.0001, 0.01, 1h));
  EXPECT_EQ(quick.every, 10s);
  EXPECT_THAT(quick.reason, testing::EndsWith(", but at least 10 s"));
}

TEST(ChooseInterval, never_ends_a_save_after_the_deadline) {
  for (const int left_s : {86400 * 30, 86400, 7200, 600, 60, 5, 1, 0}) {
    const Duration left = std::chrono::seconds(left_s);
    CheckpointCosts f = facts(2, 8, 24h);
    f.left = left;
    const Interval interval = choose_interval(f);
    EXPECT_LE(seconds(interval) + 10, std::max(10.0, Seconds(left).count())) << Seconds(left).count();
  }
  CheckpointCosts f = facts(2, 8, 24h);
  f.left = 60s;
  EXPECT_EQ(seconds(choose_interval(f)), 40);
  EXPECT_THAT(choose_interval(f).reason, testing::EndsWith(", but only 1 min 00 s left"));
}

TEST(ChooseInterval, marks_an_estimate) {
  CheckpointCosts f = estimate_costs(1'000'000'000);
  f.mtbf = 24h;
  EXPECT_EQ(f.stall_s, 0.2);
  EXPECT_EQ(f.write_s, 2);
  EXPECT_THAT(choose_interval(f).reason, testing::StartsWith("stall 0.2 s, write time 2.0 s (estimated), "));
}

}  // namespace
}  // namespace stoker::checkpoint
