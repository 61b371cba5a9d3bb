#include "launch/next/policy.h"

#include <gtest/gtest.h>

namespace stoker::launch {
namespace {

job::Job with(job::RestartOptions restart, bool is_chain = false) {
  job::Job job;
  job.restart = restart;
  if (is_chain) job.chain.until = job::Until::done;
  return job;
}

const CheckpointStamp kFirst{"/c/step-100", 100};
const CheckpointStamp kSecond{"/c/step-200", 200};

std::vector<PastAttempt> ends(std::initializer_list<std::pair<Cause, CheckpointStamp>> attempts) {
  std::vector<PastAttempt> history;
  for (const auto& [cause, mark] : attempts)
    history.push_back({static_cast<int>(history.size()) + 1, cause, mark});
  return history;
}

constexpr job::RestartOptions kSome{
    .preempted = 2, .node_failed = 1, .timeout = 0, .failed = 0, .out_of_memory = 0, .without_progress = 2};

TEST(Policy, each_cause_has_a_separate_limit) {
  const job::Job job = with(kSome);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}}), {}).will_continue);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::node_failed, {}}}), {}).will_continue);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::preempted, {}}}), {}).will_continue);
  const auto often = ends({{Cause::preempted, {}}, {Cause::preempted, {}}, {Cause::preempted, {}}});
  EXPECT_EQ(judge_next(job, often, {}).why, "preempted 3 times (restart.preempted: 2)");
  EXPECT_EQ(judge_next(job, ends({{Cause::failed, {}}}), {}).why, "failed (restart.failed: 0)");
  EXPECT_EQ(judge_next(job, ends({{Cause::out_of_memory, {}}}), {}).why,
            "out of memory (restart.out_of_memory: 0)");
  EXPECT_EQ(judge_next(job, ends({{Cause::stopped, {}}}), kFirst).why,
            "stopped after a checkpoint (restart.timeout: 0)");
}

TEST(Policy, time_limit_of_a_link_does_not_end_a_chain) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}}), kFirst).will_continue);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, kFirst}}), kSecond).will_continue);
  EXPECT_FALSE(judge_next(job, ends({{Cause::failed, {}}}), kFirst).will_continue);
}

TEST(Policy, stops_after_two_attempts_without_a_newer_checkpoint) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}}), {}).will_continue);
  EXPECT_EQ(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, {}}}), {}).why,
            "2 attempts in a row without progress: no checkpoint yet (restart.without_progress: 2)");
  EXPECT_EQ(
      judge_next(job, ends({{Cause::stopped, {}}, {Cause::stopped, kFirst}, {Cause::timeout, kFirst}}),
                 kFirst)
          .why,
      "2 attempts in a row without progress: no checkpoint after step-100 (restart.without_progress: 2)");
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, kFirst}}), kFirst).will_continue);
  // The same name, rewritten.
  const CheckpointStamp again{kFirst.path, kFirst.written + 5};
  EXPECT_TRUE(
      judge_next(job, ends({{Cause::stopped, kFirst}, {Cause::stopped, kFirst}}), again).will_continue);
}

TEST(Policy, external_endings_do_not_count_as_no_progress) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::preempted, {}}}), {}).will_continue);
  EXPECT_FALSE(judge_next(job, ends({{Cause::timeout, {}}, {Cause::preempted, {}}, {Cause::timeout, {}}}), {})
                   .will_continue);
  EXPECT_TRUE(judge_next(job, ends({{Cause::requeued, {}}, {Cause::requeued, {}}, {Cause::requeued, {}}}), {})
                  .will_continue);
}

TEST(Policy, done_and_cancelled_runs_never_restart) {
  const job::Job job = with({.preempted = 9,
                             .node_failed = 9,
                             .timeout = 9,
                             .failed = 9,
                             .out_of_memory = 9,
                             .without_progress = 9},
                            true);
  EXPECT_FALSE(judge_next(job, ends({{Cause::done, {}}}), kFirst).will_continue);
  EXPECT_EQ(judge_next(job, ends({{Cause::cancelled, {}}}), kFirst).why, "was cancelled");
  EXPECT_TRUE(judge_next(job, {}, {}).will_continue);
}

}  // namespace
}  // namespace stoker::launch
