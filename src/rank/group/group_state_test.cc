#include "rank/group/group_state.h"

#include <csignal>

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

using namespace group_event;

GroupState after(GroupState state, const std::vector<GroupEvent>& events) {
  for (const GroupEvent& event : events) state = next(std::move(state), event).state;
  return state;
}
GroupState after(const std::vector<GroupEvent>& events) { return after(GroupState(), events); }

RankStatus exited(int rank, int code, double time = 1) {
  return {.rank = Rank(rank),
          .host = "n" + std::to_string(rank),
          .joined = true,
          .ended = RankExit{.exit = {.code = code}, .time = time, .ran_s = 2}};
}
RankStatus stopped(int rank) {
  RankStatus status = exited(rank, 0);
  status.ended->exit = {0, SIGTERM};
  status.ended->stopped_by_us = true;
  return status;
}

constexpr const char* kLimit = "time limit 2h (resources.time)";
Ending ending(const GroupState& state, const std::vector<RankStatus>& statuses, bool has_checkpoint = true) {
  return conclude(state, statuses,
                  {.deadline_text = kLimit, .has_checkpoint = [=] { return has_checkpoint; }});
}

TEST(GroupState, a_lost_run_folder_explains_lost_output_and_leaves_the_outcome) {
  RankStatus rank = exited(0, 0);
  rank.ended->log_error = "rank-0000.log: was removed during the run; its output is lost";
  const Ending in_place = conclude({}, {rank}, {});
  EXPECT_EQ(in_place.lost_output, "rank 0 (n0): " + rank.ended->log_error);
  EXPECT_FALSE(in_place.is_folder_lost);
  const Ending lost = conclude({}, {rank}, {.lost_folder = "run folder /r: was removed during the run"});
  EXPECT_EQ(lost.outcome, record::Outcome::done);
  EXPECT_EQ(lost.exit_code, 0);
  EXPECT_EQ(lost.lost_output, "run folder /r: was removed during the run");
  EXPECT_TRUE(lost.is_folder_lost);
}

TEST(GroupState, ranks_are_welcomed_once_when_all_have_joined) {
  const GroupTransition step = next({}, AllJoined{});
  EXPECT_EQ(step.action, GroupAction::welcome);
  EXPECT_EQ(step.state.phase, GroupPhase::running);
  EXPECT_EQ(next(step.state, AllJoined{}).action, GroupAction::none);
  EXPECT_EQ(next(after({RankFailed{"rank 1 failed"}}), AllJoined{}).action, GroupAction::none);
}

TEST(GroupState, a_stop_before_all_have_joined_is_an_abort) {
  EXPECT_EQ(after({RankFailed{"x"}}).phase, GroupPhase::aborting);
  EXPECT_EQ(after({AllJoined{}, RankFailed{"x"}}).phase, GroupPhase::stopping);
}

TEST(GroupState, the_first_failure_stops_all_ranks_and_later_ones_change_nothing) {
  const GroupTransition first = next(after({AllJoined{}}), RankFailed{"rank 1 failed"});
  EXPECT_EQ(first.action, GroupAction::stop);
  EXPECT_EQ(first.signal, SIGTERM);
  EXPECT_EQ(first.state.reason, "rank 1 failed");
  for (const GroupEvent& late : std::vector<GroupEvent>{RankFailed{"rank 2 failed"}, CheckpointOverdue{},
                                                        TimeLimit{kLimit, 9}, SaveDue{}}) {
    const GroupTransition second = next(first.state, late);
    EXPECT_EQ(second.action, GroupAction::none);
    EXPECT_EQ(second.state, first.state);
  }
}

TEST(GroupState, a_save_is_requested_once_and_only_from_running_ranks) {
  EXPECT_EQ(next({}, SaveDue{}).action, GroupAction::none);
  const GroupTransition step = next(after({AllJoined{}}), SaveDue{});
  EXPECT_EQ(step.action, GroupAction::request_save);
  EXPECT_EQ(next(step.state, SaveDue{}).action, GroupAction::none);
}

TEST(GroupState, a_signal_stops_the_ranks_with_itself_and_a_second_one_kills) {
  const GroupTransition first = next(after({AllJoined{}}), Termination{.signal = SIGINT, .time = 7});
  EXPECT_EQ(first.action, GroupAction::stop);
  EXPECT_EQ(first.signal, SIGINT);
  EXPECT_EQ(first.state.reason, "interrupted by SIGINT");
  EXPECT_EQ(first.state.healthy_until, 7);
  EXPECT_EQ(next(first.state, Termination{.signal = SIGINT, .was_stopping = true}).action, GroupAction::kill);
}

TEST(GroupState, a_signal_during_a_stop_kills_unless_the_stop_is_news) {
  const GroupState failed = after({AllJoined{}, RankFailed{"x"}});
  EXPECT_EQ(next(failed, Termination{.signal = SIGTERM, .was_stopping = true}).action, GroupAction::kill);
  EXPECT_EQ(next(failed, Termination{.signal = SIGTERM, .was_stopping = false}).action, GroupAction::none);
}

TEST(GroupState, a_signal_that_reached_a_rank_first_is_the_cause) {
  const GroupTransition step =
      next(after({AllJoined{}, RankFailed{"x"}}),
           Termination{.signal = SIGTERM, .was_stopping = true, .has_reached_a_rank = true});
  EXPECT_EQ(step.action, GroupAction::none);
  EXPECT_EQ(step.state.cause, StopCause::interrupted);
  EXPECT_EQ(step.state.interrupted_by, SIGTERM);
  EXPECT_FALSE(step.state.healthy_until);
}

TEST(GroupState, only_a_second_signal_after_the_last_rank_kills) {
  const GroupTransition first =
      next(after({AllJoined{}}), Termination{.signal = SIGTERM, .have_all_ended = true});
  EXPECT_EQ(first.action, GroupAction::none);
  EXPECT_EQ(first.state.interrupted_by, 0);
  EXPECT_EQ(next(first.state, Termination{.signal = SIGTERM, .have_all_ended = true}).action,
            GroupAction::kill);
}

TEST(GroupState, a_refusal_takes_precedence) {
  const GroupState state = after({RankFailed{"x"}, Refused{"rank 3: world size 4, not 2", 2}, Refused{"y", 3},
                                  Termination{.signal = SIGTERM, .has_reached_a_rank = true}});
  const Ending refused = ending(state, {exited(0, 7)});
  EXPECT_EQ(refused.outcome, record::Outcome::failed);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.cause, "rank 3: world size 4, not 2");
  EXPECT_EQ(refused.interrupted_by, SIGTERM);
}

TEST(Conclude, without_a_stop_the_ranks_decide) {
  EXPECT_EQ(ending(after({AllJoined{}}), {exited(0, 0)}).outcome, record::Outcome::done);
  EXPECT_EQ(ending(after({AllJoined{}, RankFailed{"x"}}), {exited(0, 7), stopped(1)}).exit_code, 7);
}

TEST(Conclude, an_interrupted_run_is_stopped_by_the_signal) {
  const GroupState state = after({AllJoined{}, Termination{.signal = SIGINT, .time = 5}});
  const Ending interrupted = ending(state, {stopped(0), stopped(1)});
  EXPECT_EQ(interrupted.outcome, record::Outcome::stopped);
  EXPECT_EQ(interrupted.exit_code, 130);
  EXPECT_EQ(interrupted.cause, "interrupted by SIGINT");
  EXPECT_EQ(interrupted.other_ranks, "ranks 0, 1 stopped");
  EXPECT_EQ(interrupted.interrupted_by, SIGINT);
}

TEST(Conclude, a_failure_before_the_signal_remains_a_failure) {
  const GroupState state = after({AllJoined{}, Termination{.signal = SIGINT, .time = 5}});
  EXPECT_EQ(ending(state, {exited(0, 7, 4.9), stopped(1)}).exit_code, 7);
  EXPECT_EQ(ending(state, {exited(0, 7, 5.1), stopped(1)}).exit_code, 130);
}

TEST(Conclude, a_failure_by_a_signal_that_came_first_is_an_interruption) {
  const GroupState state =
      after({AllJoined{}, RankFailed{"x"},
             Termination{.signal = SIGTERM, .was_stopping = true, .has_reached_a_rank = true}});
  EXPECT_EQ(ending(state, {exited(0, 1, 1), stopped(1)}).exit_code, 143);
}

TEST(Conclude, the_time_limit_stops_a_run) {
  const GroupState state = after({AllJoined{}, SaveDue{}, TimeLimit{kLimit, 5}});
  const Ending limited = ending(state, {stopped(0)});
  EXPECT_EQ(limited.outcome, record::Outcome::stopped);
  EXPECT_EQ(limited.exit_code, record::kOutOfTime);
  EXPECT_EQ(limited.cause, kLimit);
}

TEST(Conclude, exit_75_names_what_asked_for_the_checkpoint) {
  const std::vector<RankStatus> saved = {exited(0, 75), exited(1, 75)};
  EXPECT_EQ(ending(after({AllJoined{}}), saved).cause, "stopped after a checkpoint");
  EXPECT_EQ(ending(after({AllJoined{}, SaveDue{}}), saved).cause,
            std::string("stopped after a checkpoint before ") + kLimit);
  EXPECT_EQ(ending(after({AllJoined{}, SaveDue{}, TimeLimit{kLimit, 5}}), saved).cause,
            std::string(kLimit) + ", stopped after a checkpoint");
  EXPECT_EQ(ending(after({AllJoined{}, SaveDue{}, Termination{.signal = SIGTERM}}), saved).cause,
            "interrupted by SIGTERM, stopped after a checkpoint");
  EXPECT_EQ(ending(after({AllJoined{}}), saved, false).exit_code, 75);
  EXPECT_NE(ending(after({AllJoined{}}), saved, false).cause.find("there is no checkpoint"),
            std::string::npos);
}

TEST(Conclude, peers_that_ignore_a_checkpoint_stop_do_not_change_the_ending) {
  const GroupState state = after({AllJoined{}, CheckpointOverdue{}});
  EXPECT_EQ(state.cause, StopCause::checkpoint_overdue);
  EXPECT_EQ(ending(state, {exited(0, 75), stopped(1)}).exit_code, 75);
}

}  // namespace
}  // namespace stoker::rank
