#include "torch/trainer/stop.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace stoker::torch {
namespace {

const WallTime kNow(std::chrono::seconds(1'800'000'000));

TEST(Stop, a_signal_is_a_request) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const StopSignals signals;
    const StopRule rule(signals, std::nullopt);
    EXPECT_FALSE(rule.is_due(kNow));
    ::raise(signal);
    EXPECT_TRUE(rule.is_due(kNow));
    EXPECT_STREQ(rule.reason(), "asked to stop");
  }
}

TEST(Stop, a_second_signal_changes_nothing) {
  const StopSignals signals;
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.requested());
}

TEST(Stop, leaves_time_for_two_steps_two_writes_and_the_reserve) {
  const StopSignals signals;
  StopRule rule(signals, kNow + std::chrono::seconds(100));
  rule.saw_step(10);
  rule.saw_write(30);
  rule.saw_step(5);
  EXPECT_FALSE(rule.is_due(kNow + std::chrono::seconds(14)));
  EXPECT_TRUE(rule.is_due(kNow + std::chrono::seconds(16)));
  EXPECT_STREQ(rule.reason(), "little time left");
}

TEST(Stop, is_never_due_without_a_deadline) {
  const StopSignals signals;
  EXPECT_FALSE(StopRule(signals, std::nullopt).is_due(kNow + std::chrono::hours(100'000)));
}

}  // namespace
}  // namespace stoker::torch
