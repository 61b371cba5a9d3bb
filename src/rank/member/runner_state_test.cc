#include "rank/member/runner_state.h"

#include <csignal>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

using namespace runner_event;
using namespace std::chrono_literals;

MonoTime time_at(Duration time) { return MonoTime() + time; }

RunnerState after(const std::vector<RunnerEvent>& events) {
  RunnerState state;
  for (const RunnerEvent& event : events) state = next(state, event).state;
  return state;
}

TEST(RunnerState, command_without_descendants_is_over_at_its_exit) {
  const RunnerTransition step = next({}, CommandExited{.exit = {7, 0}});
  EXPECT_EQ(step.state.phase, RunnerPhase::over);
  EXPECT_EQ(step.action, RunnerAction::none);
  EXPECT_EQ(exit_code(step.state, Role::rank), 7);
}

TEST(RunnerState, leftover_processes_are_stopped) {
  const RunnerTransition step = next({}, CommandExited{.has_descendants = true, .kill_at = time_at(5s)});
  EXPECT_EQ(step.state.phase, RunnerPhase::draining);
  EXPECT_EQ(step.state.stop, RunnerStop::leftovers);
  EXPECT_EQ(step.action, RunnerAction::signal_all);
  EXPECT_EQ(step.signal, SIGTERM);
  EXPECT_EQ(step.state.kill_at, time_at(5s));
  EXPECT_EQ(next(step.state, DescendantsGone{}).state.phase, RunnerPhase::over);
}

TEST(RunnerState, leftover_processes_of_a_stopped_command_have_their_signal_already) {
  const RunnerState stopping = after({StopRequested{SIGTERM, time_at(5s)}});
  EXPECT_EQ(next(stopping, CommandExited{.has_descendants = true, .kill_at = time_at(9s)}).action,
            RunnerAction::none);
}

TEST(RunnerState, only_the_first_stop_sends_its_signal_but_sigkill_always_does) {
  const RunnerTransition first = next({}, StopRequested{SIGINT, time_at(30s)});
  EXPECT_EQ(first.action, RunnerAction::signal_all);
  EXPECT_EQ(first.signal, SIGINT);
  EXPECT_EQ(next(first.state, StopRequested{SIGTERM, time_at(40s)}).action, RunnerAction::none);
  const RunnerTransition kill = next(first.state, StopRequested{SIGKILL, time_at(2s)});
  EXPECT_EQ(kill.action, RunnerAction::signal_all);
  EXPECT_EQ(kill.signal, SIGKILL);
}

TEST(RunnerState, the_earliest_kill_time_counts) {
  EXPECT_EQ(after({StopRequested{SIGTERM, time_at(30s)}, StopRequested{SIGTERM, time_at(40s)}}).kill_at,
            time_at(30s));
  EXPECT_EQ(after({StopRequested{SIGTERM, time_at(30s)}, RunLost{time_at(20s)}}).kill_at, time_at(20s));
}

TEST(RunnerState, dismissed_torchrun_is_killed_alone_and_exits_with_0) {
  const RunnerTransition step = next({}, Dismissed{});
  EXPECT_EQ(step.action, RunnerAction::kill_command);
  EXPECT_FALSE(step.state.is_stopping());
  EXPECT_EQ(exit_code(next(step.state, CommandExited{.exit = {0, SIGKILL}}).state, Role::node), 0);
}

TEST(RunnerState, dismissal_after_the_exit_changes_nothing) {
  const RunnerTransition step = next(after({CommandExited{.exit = {3, 0}}}), Dismissed{});
  EXPECT_EQ(step.action, RunnerAction::none);
  EXPECT_EQ(exit_code(step.state, Role::node), 3);
}

TEST(RunnerState, torchrun_gets_0_unless_the_run_is_lost) {
  EXPECT_EQ(exit_code(after({CommandExited{.exit = {7, 0}}}), Role::torchrun_rank), 0);
  EXPECT_EQ(exit_code(after({RunLost{time_at(1s)}, CommandExited{.exit = {7, 0}}}), Role::torchrun_rank), 7);
  EXPECT_EQ(exit_code(after({StopRequested{SIGTERM, time_at(1s)}, RunLost{time_at(1s)},
                             CommandExited{.exit = {7, 0}}}),
                      Role::torchrun_rank),
            7);
  EXPECT_EQ(exit_code(after({RunLost{time_at(1s)}, StopRequested{SIGTERM, time_at(1s)},
                             CommandExited{.exit = {7, 0}}}),
                      Role::torchrun_rank),
            7);
}

}  // namespace
}  // namespace stoker::rank
