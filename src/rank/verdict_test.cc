#include "rank/verdict.h"

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

RankStory story(int rank, std::optional<Ended> ended = std::nullopt) {
  return {
      .rank = Rank(rank), .host = "node" + std::to_string(rank), .joined = true, .ended = std::move(ended)};
}

Ended left(int code, double time) { return {.exit = {.code = code}, .time = time, .ran_s = 2.1}; }
Ended stopped_by_us(double time) { return {.exit = {.signal = 15}, .stopped_by_us = true, .time = time}; }

TEST(Verdict, every_rank_done_is_done) {
  const Ending ending = judge({story(0, left(0, 1)), story(1, left(0, 2))});
  EXPECT_EQ(ending.outcome, record::Outcome::done);
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_EQ(ending.cause, "");
}

TEST(Verdict, the_earliest_failure_is_the_cause_whatever_its_rank) {
  const Ending ending = judge(
      {story(0, left(1, 5.1)), story(1, left(7, 5.0)), story(2, stopped_by_us(6)), story(3, left(0, 4))});
  EXPECT_EQ(ending.exit_code, 7);
  EXPECT_EQ(ending.first_rank, 1);
  EXPECT_EQ(ending.cause, "rank 1 (node1) left after 2.1 s: exit code 7");
  EXPECT_EQ(ending.others, "rank 2 stopped; rank 0 failed after it; rank 3 done before it");
}

TEST(Verdict, a_killed_rank_is_the_cause_even_if_its_peers_were_seen_to_leave_before) {
  const Ended killed = {.exit = {.signal = 9}, .time = 5.9, .where = {"backward", 2, 118}};
  const Ending ending = judge({story(0, killed), story(1, left(1, 5.0)), story(2, left(1, 5.1))});
  EXPECT_EQ(ending.exit_code, 137);
  EXPECT_EQ(ending.cause,
            "rank 0 (node0) left at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL)");
  EXPECT_EQ(ending.others, "ranks 1, 2 failed after it");
}

TEST(Verdict, a_library_that_aborts_for_want_of_a_peer_is_not_the_cause) {
  EXPECT_EQ(judge({story(0, Ended{.exit = {.signal = 6}, .time = 2}), story(1, left(7, 1))}).first_rank, 1);
}

TEST(Verdict, a_lost_rank_is_the_cause_even_if_its_peers_were_seen_to_leave_before) {
  RankStory lost = story(0);
  lost.judgement = Judgement{3, "was lost: its `stoker rank` was killed by signal 9 (SIGKILL)", 137, true};
  EXPECT_EQ(judge({lost, story(1, left(1, 1))}).first_rank, 0);
}

TEST(Verdict, what_ended_because_we_asked_is_no_failure) {
  RankStory lost = story(0);
  lost.judgement = Judgement{3, "was lost: its `stoker rank` was killed by signal 9 (SIGKILL)", 137};
  const Ending ending = judge({lost, story(1, stopped_by_us(1))});
  EXPECT_EQ(ending.exit_code, 137);
  EXPECT_EQ(ending.cause, "rank 0 (node0) was lost: its `stoker rank` was killed by signal 9 (SIGKILL)");
}

TEST(Verdict, a_place_a_signal_and_the_memory_limit_are_told) {
  Ended ended = {.exit = {.signal = 9}, .time = 1, .where = {"backward", 2, 118}};
  ended.memory = "out of memory (cgroup limit 32 GB)";
  EXPECT_EQ(judge({story(0, ended)}).cause,
            "rank 0 (node0) left at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL), "
            "out of memory (cgroup limit 32 GB)");
  EXPECT_EQ(judge({story(0, ended)}).exit_code, 137);
}

TEST(Verdict, a_command_that_never_started_has_no_place) {
  Ended ended = left(127, 1);
  ended.start_error = "./train: no such command in PATH";
  EXPECT_EQ(judge({story(0, ended)}).cause, "rank 0 (node0) never started: ./train: no such command in PATH");
}

TEST(Verdict, exit_75_is_a_stop_after_a_checkpoint_unless_something_failed) {
  EXPECT_EQ(judge({story(0, left(75, 2)), story(1, left(75, 1))}).outcome, record::Outcome::stopped);
  EXPECT_EQ(judge({story(0, left(75, 2)), story(1, left(0, 1))}).exit_code, 75);
  EXPECT_EQ(judge({story(0, left(75, 1)), story(1, left(9, 2))}).exit_code, 9);
}

TEST(Verdict, ranks_that_were_done_before_the_first_failure_are_told_from_those_that_were_later) {
  const Ending ending = judge({story(0, left(1, 5)), story(1, left(0, 4)), story(2, left(0, 5.2))});
  EXPECT_EQ(ending.first_rank, 0);
  EXPECT_EQ(ending.others, "rank 1 done before it; rank 2 done");
  EXPECT_EQ(describe_others({story(0, left(0, 4)), story(1, left(0, 5))}, std::nullopt), "ranks 0, 1 done");
}

TEST(Verdict, a_checkpoint_is_claimed_only_where_there_is_one) {
  const std::vector<RankStory> stories = {story(0, left(75, 1)), story(1, left(0, 1)), story(2, left(75, 2))};
  EXPECT_EQ(describe_stop(stories, {}), "stopped after a checkpoint");
  EXPECT_EQ(describe_stop(stories, {.asked_by = "interrupted by SIGTERM"}),
            "interrupted by SIGTERM, stopped after a checkpoint");
  EXPECT_EQ(describe_stop(stories, {.before = "time 8s is over (resources.time)"}),
            "stopped after a checkpoint before time 8s is over (resources.time)");
  EXPECT_EQ(describe_stop(stories, {.has_checkpoint = false}),
            "ranks 0, 2 left with exit code 75 (saved and stopped), but there is no checkpoint "
            "(STOKER_CHECKPOINT_DIR)");
  EXPECT_EQ(describe_stop(stories, {.has_checkpoint = false, .asked_by = "interrupted by SIGTERM"}),
            "interrupted by SIGTERM, ranks 0, 2 left with exit code 75 (saved and stopped), but there is no "
            "checkpoint (STOKER_CHECKPOINT_DIR)");
  EXPECT_EQ(
      describe_stop(stories, {.has_checkpoint = false, .before = "time 8s is over (resources.time)"}),
      "ranks 0, 2 left with exit code 75 (saved and stopped) before time 8s is over (resources.time), but "
      "there is no checkpoint (STOKER_CHECKPOINT_DIR)");
}

TEST(Verdict, only_what_a_rank_did_by_itself_before_the_stop_is_a_failure_of_its_own) {
  EXPECT_TRUE(has_failed_before({story(0, stopped_by_us(6)), story(1, left(7, 4.9))}, 5));
  EXPECT_TRUE(has_failed_before({story(0, Ended{.exit = {.signal = 9}, .time = 4.9})}, 5));
  EXPECT_FALSE(has_failed_before({story(0, left(7, 5.1))}, 5));
  EXPECT_FALSE(has_failed_before({story(0, left(143, 4.9)), story(1, stopped_by_us(4.9))}, 5));
  EXPECT_FALSE(has_failed_before({story(0, left(0, 4)), story(1, left(75, 4)), story(2)}, 5));
  RankStory lost = story(0);
  lost.judgement = Judgement{4, "was lost", 1};
  EXPECT_FALSE(has_failed_before({lost}, 5));
}

TEST(Verdict, ranks_are_named_as_people_write_them) {
  EXPECT_EQ(name_ranks({1}), "rank 1");
  EXPECT_EQ(name_ranks({0, 1}), "ranks 0, 1");
  EXPECT_EQ(name_ranks({0, 2, 3, 4, 9}), "ranks 0, 2-4, 9");
}

TEST(Verdict, hosts_cannot_write_to_the_terminal) {
  RankStory odd = story(0, left(7, 1));
  odd.host = "n\x1b[31m";
  EXPECT_EQ(describe_failure(odd), "rank 0 (n\\x1b[31m) left after 2.1 s: exit code 7");
}

TEST(Report, ends_and_beats_survive_their_messages) {
  Ended ended = {
      .exit = {.signal = 11}, .stopped_by_us = true, .time = 12.5, .ran_s = 2, .where = {"data", 1, 2}};
  ended.last_line = "bye";
  ended.left_behind = "sleep (process 4)";
  const Ended again = parse_ended(to_message(ended));
  EXPECT_EQ(again.exit.signal, 11);
  EXPECT_TRUE(again.stopped_by_us);
  EXPECT_EQ(again.time, 12.5);
  EXPECT_EQ(again.where, ended.where);
  EXPECT_EQ(again.last_line, "bye");
  EXPECT_EQ(again.left_behind, "sleep (process 4)");
  Beat beat = {.stopped_s = 1, .silent_s = 2.5, .has_beacon = true, .where = {"forward", 0, 7}};
  beat.waits_for = "10.77.1.3";
  EXPECT_EQ(parse_beat(to_message(beat)), beat);
}

TEST(Report, an_empty_message_reads_as_nothing_special) {
  EXPECT_EQ(parse_beat(net::Message{"beat", {}}), Beat{});
  EXPECT_EQ(parse_ended(net::Message{"ended", {}}).exit.shell_code(), 0);
}

}  // namespace
}  // namespace stoker::rank
