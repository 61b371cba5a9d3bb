#include "slurm/queue/batch_log.h"

#include <gtest/gtest.h>

namespace stoker::slurm {
namespace {

constexpr std::string_view kLog =
    "epoch 1\n"
    "slurmstepd-n3: error: *** JOB 9 ON n3 CANCELLED AT 2026-11-21T15:14:08 DUE TO PREEMPTION ***\n"
    "srun: forcing job termination\n"
    "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:20:00 DUE TO TIME LIMIT ***\n"
    "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-21T15:20:00 ***\n"
    "half a li";

TEST(BatchLog, uses_the_last_message_about_the_job) {
  const auto ending = last_termination(kLog, "9");
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->state, JobState::timeout);
  EXPECT_TRUE(ending->time.has_value());
  EXPECT_EQ(last_termination(kLog.substr(0, 150), "9")->state, JobState::preempted);
}

TEST(BatchLog, returns_every_message_of_a_log_of_several_jobs) {
  const auto all = parse_terminations(kLog, "");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].state, JobState::preempted);
  EXPECT_EQ(all[1].state, JobState::timeout);
  EXPECT_TRUE(parse_terminations(kLog, "8").empty());
}

TEST(BatchLog, distinguishes_the_reasons) {
  const auto state = [](std::string_view why) {
    return last_termination(
               "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:13:52 " + std::string(why), "7")
        ->state;
  };
  EXPECT_EQ(state("***"), JobState::cancelled);
  EXPECT_EQ(state("DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"), JobState::node_failed);
  EXPECT_EQ(state("DUE TO TIME LIMIT ***"), JobState::timeout);
  EXPECT_EQ(state("DUE TO JOB REQUEUE ***"), JobState::pending);
}

TEST(BatchLog, reports_lack_of_memory_with_its_amounts) {
  const std::string sampled =
      "slurmstepd-n2: error: StepId=7.0 exceeded memory limit (268435456 > 67108864), being killed\n"
      "slurmstepd-n1: error: Exceeded job memory limit\n"
      "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T15:20:00 ***\n";
  const auto ending = last_termination(sampled, "7");
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->state, JobState::out_of_memory);
  EXPECT_EQ(ending->figures, "268 MB of 67.1 MB");
  // The cancellation that follows belongs to the same termination. One with another reason does not.
  const std::string cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:20:00";
  EXPECT_EQ(last_termination(sampled + cancelled + " ***\n", "7")->state, JobState::out_of_memory);
  EXPECT_EQ(last_termination(sampled + cancelled + " DUE TO PREEMPTION ***\n", "7")->state,
            JobState::preempted);
}

TEST(BatchLog, recognizes_both_spellings_of_the_kernels_memory_message) {
  for (const char* words :
       {"Detected 1 oom-kill event(s) in StepId=7.batch cgroup. Some of your processes may "
        "have been killed by the cgroup out-of-memory handler.",
        "Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM "
        "Killed."}) {
    const auto ending = last_termination(std::string("slurmstepd: error: ") + words + "\n", "7");
    ASSERT_TRUE(ending.has_value()) << words;
    EXPECT_EQ(ending->state, JobState::out_of_memory);
    EXPECT_EQ(ending->figures, "");
    EXPECT_FALSE(last_termination(std::string("slurmstepd: error: ") + words, "70").has_value());
    EXPECT_FALSE(last_termination(std::string("my own words: ") + words, "7").has_value());
    // An array task has a different raw id in its log.
    EXPECT_TRUE(last_termination(std::string("slurmstepd: error: ") + words, "6_1").has_value());
  }
}

TEST(BatchLog, ignores_other_jobs_and_the_output_of_a_training) {
  EXPECT_FALSE(last_termination(kLog, "7").has_value());
  EXPECT_FALSE(last_termination(kLog, "90").has_value());
  EXPECT_FALSE(
      last_termination("print *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:20:00 ***\n", "9").has_value());
  EXPECT_FALSE(last_termination("slurmstepd: error: *** JOB 9 ON n1", "9").has_value());
  EXPECT_FALSE(last_termination("", "9").has_value());
  const auto torn = last_termination("slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT ", "9");
  ASSERT_TRUE(torn.has_value());
  EXPECT_FALSE(torn->time.has_value());
}

}  // namespace
}  // namespace stoker::slurm
