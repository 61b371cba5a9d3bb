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

const Mark kFirst{"/c/step-100", 100};
const Mark kSecond{"/c/step-200", 200};

std::vector<PastAttempt> ends(std::initializer_list<std::pair<Cause, Mark>> attempts) {
  std::vector<PastAttempt> history;
  for (const auto& [cause, mark] : attempts)
    history.push_back({static_cast<int>(history.size()) + 1, cause, mark});
  return history;
}

constexpr job::RestartOptions kSome{
    .preempted = 2, .node_failed = 1, .timeout = 0, .failed = 0, .out_of_memory = 0, .without_progress = 2};

TEST(Policy, each_cause_has_a_limit_of_its_own) {
  const job::Job job = with(kSome);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}}), {}).goes_on);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::node_failed, {}}}), {}).goes_on);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::preempted, {}}}), {}).goes_on);
  const auto often = ends({{Cause::preempted, {}}, {Cause::preempted, {}}, {Cause::preempted, {}}});
  EXPECT_EQ(judge_next(job, often, {}).why, "preempted 3 times (restart.preempted: 2)");
  EXPECT_EQ(judge_next(job, ends({{Cause::failed, {}}}), {}).why, "failed (restart.failed: 0)");
  EXPECT_EQ(judge_next(job, ends({{Cause::out_of_memory, {}}}), {}).why,
            "out of memory (restart.out_of_memory: 0)");
  EXPECT_EQ(judge_next(job, ends({{Cause::stopped, {}}}), kFirst).why,
            "stopped after a checkpoint (restart.timeout: 0)");
}

TEST(Policy, in_a_chain_the_end_of_a_links_time_is_no_end) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}}), kFirst).goes_on);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, kFirst}}), kSecond).goes_on);
  EXPECT_FALSE(judge_next(job, ends({{Cause::failed, {}}}), kFirst).goes_on);
}

TEST(Policy, two_attempts_in_a_row_without_a_newer_checkpoint_are_enough) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}}), {}).goes_on);
  EXPECT_EQ(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, {}}}), {}).why,
            "2 attempts in a row without progress: no checkpoint yet (restart.without_progress: 2)");
  EXPECT_EQ(
      judge_next(job, ends({{Cause::stopped, {}}, {Cause::stopped, kFirst}, {Cause::timeout, kFirst}}),
                 kFirst)
          .why,
      "2 attempts in a row without progress: no checkpoint after step-100 (restart.without_progress: 2)");
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, {}}, {Cause::timeout, kFirst}}), kFirst).goes_on);
  // The same name, written anew.
  const Mark again{kFirst.path, kFirst.written + 5};
  EXPECT_TRUE(judge_next(job, ends({{Cause::stopped, kFirst}, {Cause::stopped, kFirst}}), again).goes_on);
}

TEST(Policy, what_ends_an_attempt_from_outside_is_no_want_of_progress) {
  const job::Job job = with(kSome, true);
  EXPECT_TRUE(judge_next(job, ends({{Cause::preempted, {}}, {Cause::preempted, {}}}), {}).goes_on);
  EXPECT_FALSE(judge_next(job, ends({{Cause::timeout, {}}, {Cause::preempted, {}}, {Cause::timeout, {}}}), {})
                   .goes_on);
  EXPECT_TRUE(judge_next(job, ends({{Cause::requeued, {}}, {Cause::requeued, {}}, {Cause::requeued, {}}}), {})
                  .goes_on);
}

TEST(Policy, what_is_done_or_cancelled_never_goes_on) {
  const job::Job job = with({.preempted = 9,
                             .node_failed = 9,
                             .timeout = 9,
                             .failed = 9,
                             .out_of_memory = 9,
                             .without_progress = 9},
                            true);
  EXPECT_FALSE(judge_next(job, ends({{Cause::done, {}}}), kFirst).goes_on);
  EXPECT_EQ(judge_next(job, ends({{Cause::cancelled, {}}}), kFirst).why, "was cancelled");
  EXPECT_TRUE(judge_next(job, {}, {}).goes_on);
}

}  // namespace
}  // namespace stoker::launch
