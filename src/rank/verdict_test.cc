#include "rank/verdict.h"

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

RankStatus status(int rank, std::optional<RankExit> ended = std::nullopt) {
  return {
      .rank = Rank(rank), .host = "node" + std::to_string(rank), .joined = true, .ended = std::move(ended)};
}

RankExit left(int code, double time) { return {.exit = {.code = code}, .time = time, .ran_s = 2.1}; }
RankExit stopped_by_us(double time) { return {.exit = {.signal = 15}, .stopped_by_us = true, .time = time}; }

TEST(Verdict, every_rank_done_is_done) {
  const Ending ending = judge({status(0, left(0, 1)), status(1, left(0, 2))});
  EXPECT_EQ(ending.outcome, record::Outcome::done);
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_EQ(ending.cause, "");
}

TEST(Verdict, the_earliest_failure_is_the_cause_whatever_its_rank) {
  const Ending ending = judge(
      {status(0, left(1, 5.1)), status(1, left(7, 5.0)), status(2, stopped_by_us(6)), status(3, left(0, 4))});
  EXPECT_EQ(ending.exit_code, 7);
  EXPECT_EQ(ending.first_rank, 1);
  EXPECT_EQ(ending.cause, "rank 1 (node1) exited after 2.1 s: exit code 7");
  EXPECT_EQ(ending.other_ranks, "rank 2 stopped; rank 0 failed later; rank 3 done earlier");
}

TEST(Verdict, killed_rank_is_the_cause_even_if_peers_exit_first) {
  const RankExit killed = {.exit = {.signal = 9}, .time = 5.9, .where = {"backward", 2, 118}};
  const Ending ending = judge({status(0, killed), status(1, left(1, 5.0)), status(2, left(1, 5.1))});
  EXPECT_EQ(ending.exit_code, 137);
  EXPECT_EQ(ending.cause,
            "rank 0 (node0) exited at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL)");
  EXPECT_EQ(ending.other_ranks, "ranks 1, 2 failed later");
}

TEST(Verdict, abort_after_a_lost_peer_is_not_the_cause) {
  EXPECT_EQ(judge({status(0, RankExit{.exit = {.signal = 6}, .time = 2}), status(1, left(7, 1))}).first_rank,
            1);
}

TEST(Verdict, lost_rank_is_the_cause_even_if_peers_exit_first) {
  RankStatus lost = status(0);
  lost.detected_failure =
      DetectedFailure{3, "was lost: its `stoker rank` was killed by signal 9 (SIGKILL)", 137, true};
  EXPECT_EQ(judge({lost, status(1, left(1, 1))}).first_rank, 0);
}

TEST(Verdict, requested_stop_is_no_failure) {
  RankStatus lost = status(0);
  lost.detected_failure =
      DetectedFailure{3, "was lost: its `stoker rank` was killed by signal 9 (SIGKILL)", 137};
  const Ending ending = judge({lost, status(1, stopped_by_us(1))});
  EXPECT_EQ(ending.exit_code, 137);
  EXPECT_EQ(ending.cause, "rank 0 (node0) was lost: its `stoker rank` was killed by signal 9 (SIGKILL)");
}

TEST(Verdict, describes_position_signal_and_memory_limit) {
  RankExit ended = {.exit = {.signal = 9}, .time = 1, .where = {"backward", 2, 118}};
  ended.memory = "out of memory (cgroup limit 32 GB)";
  EXPECT_EQ(judge({status(0, ended)}).cause,
            "rank 0 (node0) exited at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL), "
            "out of memory (cgroup limit 32 GB)");
  EXPECT_EQ(judge({status(0, ended)}).exit_code, 137);
}

TEST(Verdict, a_command_that_never_started_has_no_place) {
  RankExit ended = left(127, 1);
  ended.start_error = "./train: command not found in PATH";
  EXPECT_EQ(judge({status(0, ended)}).cause,
            "rank 0 (node0) never started: ./train: command not found in PATH");
}

TEST(Verdict, exit_75_is_a_stop_after_a_checkpoint_unless_something_failed) {
  EXPECT_EQ(judge({status(0, left(75, 2)), status(1, left(75, 1))}).outcome, record::Outcome::stopped);
  EXPECT_EQ(judge({status(0, left(75, 2)), status(1, left(0, 1))}).exit_code, 75);
  EXPECT_EQ(judge({status(0, left(75, 1)), status(1, left(9, 2))}).exit_code, 9);
}

TEST(Verdict, ranks_done_before_and_after_the_failure_are_distinguished) {
  const Ending ending = judge({status(0, left(1, 5)), status(1, left(0, 4)), status(2, left(0, 5.2))});
  EXPECT_EQ(ending.first_rank, 0);
  EXPECT_EQ(ending.other_ranks, "rank 1 done earlier; rank 2 done");
  EXPECT_EQ(describe_other_ranks({status(0, left(0, 4)), status(1, left(0, 5))}, std::nullopt),
            "ranks 0, 1 done");
}

TEST(Verdict, a_checkpoint_is_claimed_only_where_there_is_one) {
  const std::vector<RankStatus> statuses = {status(0, left(75, 1)), status(1, left(0, 1)),
                                            status(2, left(75, 2))};
  EXPECT_EQ(describe_stop(statuses, {}), "stopped after a checkpoint");
  EXPECT_EQ(describe_stop(statuses, {.asked_by = "interrupted by SIGTERM"}),
            "interrupted by SIGTERM, stopped after a checkpoint");
  EXPECT_EQ(describe_stop(statuses, {.before = "time limit 8s (resources.time)"}),
            "stopped after a checkpoint before time limit 8s (resources.time)");
  EXPECT_EQ(describe_stop(statuses, {.has_checkpoint = false}),
            "ranks 0, 2 exited with code 75 (saved and stopped), but there is no checkpoint "
            "(STOKER_CHECKPOINT_DIR)");
  EXPECT_EQ(describe_stop(statuses, {.has_checkpoint = false, .asked_by = "interrupted by SIGTERM"}),
            "interrupted by SIGTERM, ranks 0, 2 exited with code 75 (saved and stopped), but there is no "
            "checkpoint (STOKER_CHECKPOINT_DIR)");
  EXPECT_EQ(describe_stop(statuses, {.has_checkpoint = false, .before = "time limit 8s (resources.time)"}),
            "ranks 0, 2 exited with code 75 (saved and stopped) before time limit 8s (resources.time), but "
            "there is no checkpoint (STOKER_CHECKPOINT_DIR)");
}

TEST(Verdict, only_failures_before_the_stop_count) {
  EXPECT_TRUE(has_failed_before({status(0, stopped_by_us(6)), status(1, left(7, 4.9))}, 5));
  EXPECT_TRUE(has_failed_before({status(0, RankExit{.exit = {.signal = 9}, .time = 4.9})}, 5));
  EXPECT_FALSE(has_failed_before({status(0, left(7, 5.1))}, 5));
  EXPECT_FALSE(has_failed_before({status(0, left(143, 4.9)), status(1, stopped_by_us(4.9))}, 5));
  EXPECT_FALSE(has_failed_before({status(0, left(0, 4)), status(1, left(75, 4)), status(2)}, 5));
  RankStatus lost = status(0);
  lost.detected_failure = DetectedFailure{4, "was lost", 1};
  EXPECT_FALSE(has_failed_before({lost}, 5));
}

TEST(Verdict, ranks_are_named_as_people_write_them) {
  EXPECT_EQ(name_ranks({1}), "rank 1");
  EXPECT_EQ(name_ranks({0, 1}), "ranks 0, 1");
  EXPECT_EQ(name_ranks({0, 2, 3, 4, 9}), "ranks 0, 2-4, 9");
}

TEST(Verdict, hosts_cannot_write_to_the_terminal) {
  RankStatus odd = status(0, left(7, 1));
  odd.host = "n\x1b[31m";
  EXPECT_EQ(describe_failure(odd), "rank 0 (n\\x1b[31m) exited after 2.1 s: exit code 7");
}

TEST(Verdict, a_place_with_few_ranks_is_named_first) {
  std::vector<RankStatus> ranks;
  for (int rank = 0; rank < 5; ++rank) {
    ranks.push_back(status(rank, stopped_by_us(1)));
    ranks.back().ended->stack = rank == 3 ? "load (a.py:1)" : "wait (b.py:2)";
  }
  ranks.push_back(status(5, stopped_by_us(1)));
  EXPECT_EQ(describe_stacks(ranks, 8),
            (std::vector<std::string>{"rank 3 was in load (a.py:1)", "ranks 0-2, 4 were in wait (b.py:2)"}));
  EXPECT_EQ(describe_stacks(ranks, 1).size(), 1u);
  EXPECT_EQ(describe_stacks({status(0)}, 8).size(), 0u);
}

TEST(Report, ends_and_beats_survive_their_messages) {
  RankExit ended = {
      .exit = {.signal = 11}, .stopped_by_us = true, .time = 12.5, .ran_s = 2, .where = {"data", 1, 2}};
  ended.last_line = "bye";
  ended.left_behind = "sleep (process 4)";
  ended.stack = "load (a.py:1)";
  const RankExit again = parse_rank_exit(to_message(ended));
  EXPECT_EQ(again.exit.signal, 11);
  EXPECT_TRUE(again.stopped_by_us);
  EXPECT_EQ(again.time, 12.5);
  EXPECT_EQ(again.where, ended.where);
  EXPECT_EQ(again.last_line, "bye");
  EXPECT_EQ(again.left_behind, "sleep (process 4)");
  EXPECT_EQ(again.stack, "load (a.py:1)");
  Heartbeat heartbeat = {.stopped_s = 1, .silent_s = 2.5, .has_beacon = true, .where = {"forward", 0, 7}};
  heartbeat.blocked_on = "10.77.1.3";
  EXPECT_EQ(parse_heartbeat(to_message(heartbeat)), heartbeat);
}

TEST(Report, an_empty_message_reads_as_nothing_special) {
  EXPECT_EQ(parse_heartbeat(net::ControlMessage{"heartbeat", {}}), Heartbeat{});
  EXPECT_EQ(parse_rank_exit(net::ControlMessage{"ended", {}}).exit.shell_code(), 0);
}

}  // namespace
}  // namespace stoker::rank
