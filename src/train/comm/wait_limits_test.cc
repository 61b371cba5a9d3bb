#include "train/comm/wait_limits.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(WaitLimits, allow_extra_time_for_the_first_steps) {
  WaitLimits limits(minutes(10));
  for (int i = 0; i < 4; ++i) limits.record_step_time(0.01);
  EXPECT_EQ(limits.straggler_after(), minutes(1));
  limits.record_step_time(0.01);
  EXPECT_EQ(limits.straggler_after(), seconds(5));
  EXPECT_EQ(limits.ended_after(), minutes(10));
}

TEST(WaitLimits, follow_the_usual_step) {
  WaitLimits limits(minutes(10));
  for (int i = 0; i < 40; ++i) limits.record_step_time(2);
  EXPECT_EQ(limits.straggler_after(), seconds(20));
}

TEST(WaitLimits, a_slow_checkpoint_does_not_end_a_healthy_run) {
  WaitLimits limits(minutes(10));
  for (int i = 0; i < 100; ++i) limits.record_step_time(i == 7 ? 90 : 1);
  EXPECT_EQ(limits.straggler_after(), seconds(180));
  EXPECT_EQ(limits.ended_after(), minutes(30));
}

}  // namespace
}  // namespace stoker::train
