#include "train/trainer/stop.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

const WallTime kNow(std::chrono::seconds(1'800'000'000));

TEST(Stop, a_signal_is_a_request) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
    const StopSignals signals;
    const StopRule rule(signals, std::nullopt);
    EXPECT_FALSE(rule.is_due(kNow));
    ::raise(signal);
    EXPECT_TRUE(rule.is_due(kNow));
    EXPECT_STREQ(rule.reason(), "asked to stop");
  }
}

TEST(Stop, a_second_signal_has_no_effect) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const StopSignals signals;
    ::raise(signal);
    ::raise(signal);
    EXPECT_TRUE(signals.requested());
  }
}

// As the kernel sends it for a key press.
void press_ctrl_c() {
  siginfo_t info{};
  info.si_signo = SIGINT;
  info.si_code = SI_KERNEL;
  ::syscall(SYS_rt_sigqueueinfo, ::getpid(), SIGINT, &info);
}

TEST(Stop, a_second_ctrl_c_ends_immediately) {
  const StopSignals signals;
  ::raise(SIGINT);  // a signal from a process does not count
  EXPECT_EXIT(
      {
        press_ctrl_c();
        if (signals.requested()) press_ctrl_c();
        ::_exit(1);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(Stop, ignored_signals_stay_ignored_and_old_handlers_are_restored) {
  ::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals signals;
    ::raise(SIGHUP);
    EXPECT_FALSE(signals.requested());
  }
  EXPECT_EQ(::signal(SIGHUP, SIG_DFL), SIG_IGN);
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

TEST(Stop, leaves_time_for_two_steps_two_writes_and_the_reserve) {
  const StopSignals signals;
  StopRule rule(signals, kNow + std::chrono::seconds(100));
  rule.record_step_time(10);
  rule.record_write_time(30);
  rule.record_step_time(5);
  EXPECT_FALSE(rule.is_due(kNow + std::chrono::seconds(14)));
  EXPECT_TRUE(rule.is_due(kNow + std::chrono::seconds(16)));
  EXPECT_STREQ(rule.reason(), "little time left");
}

TEST(Stop, is_never_due_without_a_deadline) {
  const StopSignals signals;
  EXPECT_FALSE(StopRule(signals, std::nullopt).is_due(kNow + std::chrono::hours(100'000)));
}

}  // namespace
}  // namespace stoker::train
