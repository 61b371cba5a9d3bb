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
