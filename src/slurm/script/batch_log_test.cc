#include "slurm/script/batch_log.h"

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

TEST(BatchLog, the_last_word_about_the_job_counts) {
  const auto ending = last_ending(kLog, "9");
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->state, JobState::timeout);
  EXPECT_TRUE(ending->time.has_value());
  EXPECT_EQ(last_ending(kLog.substr(0, 150), "9")->state, JobState::preempted);
}

TEST(BatchLog, every_word_of_a_log_of_several_jobs_can_be_had) {
  const auto all = endings(kLog, "");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].state, JobState::preempted);
  EXPECT_EQ(all[1].state, JobState::timeout);
  EXPECT_TRUE(endings(kLog, "8").empty());
}

TEST(BatchLog, each_reason_is_told_apart) {
  const auto state = [](std::string_view why) {
    return last_ending(
               "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:13:52 " + std::string(why), "7")
        ->state;
  };
  EXPECT_EQ(state("***"), JobState::cancelled);
  EXPECT_EQ(state("DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"), JobState::node_failed);
  EXPECT_EQ(state("DUE TO TIME LIMIT ***"), JobState::timeout);
  EXPECT_EQ(state("DUE TO JOB REQUEUE ***"), JobState::pending);
}

TEST(BatchLog, lack_of_memory_is_told_with_its_figures) {
  const std::string sampled =
      "slurmstepd-n2: error: StepId=7.0 exceeded memory limit (268435456 > 67108864), being killed\n"
      "slurmstepd-n1: error: Exceeded job memory limit\n"
      "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-21T15:20:00 ***\n";
  const auto ending = last_ending(sampled, "7");
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->state, JobState::out_of_memory);
  EXPECT_EQ(ending->figures, "268 MB of 67.1 MB");
  // What Slurm then does to the job is no other end; what it does for another reason is.
  const std::string cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T15:20:00";
  EXPECT_EQ(last_ending(sampled + cancelled + " ***\n", "7")->state, JobState::out_of_memory);
  EXPECT_EQ(last_ending(sampled + cancelled + " DUE TO PREEMPTION ***\n", "7")->state, JobState::preempted);
}

TEST(BatchLog, the_kernels_word_about_memory_is_known_in_both_spellings) {
  for (const char* words :
       {"Detected 1 oom-kill event(s) in StepId=7.batch cgroup. Some of your processes may "
        "have been killed by the cgroup out-of-memory handler.",
        "Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM "
        "Killed."}) {
    const auto ending = last_ending(std::string("slurmstepd: error: ") + words + "\n", "7");
    ASSERT_TRUE(ending.has_value()) << words;
    EXPECT_EQ(ending->state, JobState::out_of_memory);
    EXPECT_EQ(ending->figures, "");
    EXPECT_FALSE(last_ending(std::string("slurmstepd: error: ") + words, "70").has_value());
    EXPECT_FALSE(last_ending(std::string("my own words: ") + words, "7").has_value());
    // A task of an array has a number of its own there.
    EXPECT_TRUE(last_ending(std::string("slurmstepd: error: ") + words, "6_1").has_value());
  }
}

TEST(BatchLog, other_jobs_and_what_a_training_prints_do_not_count) {
  EXPECT_FALSE(last_ending(kLog, "7").has_value());
  EXPECT_FALSE(last_ending(kLog, "90").has_value());
  EXPECT_FALSE(last_ending("print *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:20:00 ***\n", "9").has_value());
  EXPECT_FALSE(last_ending("slurmstepd: error: *** JOB 9 ON n1", "9").has_value());
  EXPECT_FALSE(last_ending("", "9").has_value());
  const auto torn = last_ending("slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT ", "9");
  ASSERT_TRUE(torn.has_value());
  EXPECT_FALSE(torn->time.has_value());
}

}  // namespace
}  // namespace stoker::slurm
