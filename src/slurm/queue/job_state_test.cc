#include "slurm/queue/job_state.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

TEST(JobState, reads_full_compact_and_truncated_states_of_every_release) {
  EXPECT_EQ(parse_job_state("RUNNING"), JobState::running);
  EXPECT_EQ(parse_job_state("PD"), JobState::pending);
  EXPECT_EQ(parse_job_state("OUT_OF_MEMORY"), JobState::out_of_memory);
  EXPECT_EQ(parse_job_state("OUT_OF_ME+"), JobState::out_of_memory);
  EXPECT_EQ(parse_job_state("CANCELLED by 1000"), JobState::cancelled);
  EXPECT_EQ(parse_job_state("CANCELLED+"), JobState::cancelled);
  EXPECT_EQ(parse_job_state("completing"), JobState::completing);
  EXPECT_EQ(parse_job_state("RUNNING,COMPLETING"), JobState::running);
  EXPECT_EQ(parse_job_state("REQUEUE_HOLD"), JobState::pending);
  EXPECT_EQ(parse_job_state("BOOT_FAIL"), JobState::node_failed);
}

TEST(JobState, an_unknown_state_is_not_final) {
  for (const char* word : {"", "+", "HIBERNATING", "COMPLETEDISH", "C+", "COMPLETED\x01"}) {
    EXPECT_EQ(parse_job_state(word), JobState::unknown) << word;
    EXPECT_FALSE(is_over(parse_job_state(word))) << word;
  }
}

TEST(JobState, a_job_that_may_still_run_is_not_final) {
  for (const char* word : {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "STOPPED"}) {
    EXPECT_FALSE(is_over(parse_job_state(word))) << word;
  }
  for (const char* word : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL",
                           "PREEMPTED", "DEADLINE", "BOOT_FAIL"}) {
    EXPECT_TRUE(is_over(parse_job_state(word))) << word;
  }
}

TEST(JobState, describes_the_reasons_for_waiting) {
  EXPECT_EQ(reason_text("Priority"), "other jobs have a higher priority");
  EXPECT_EQ(reason_text("ReqNodeNotAvail, UnavailableNodes:n3"),
            "a requested node is down, drained or reserved");
  EXPECT_EQ(reason_text("QOSMaxGRESPerUser"), "a limit of its quality of service is reached");
  EXPECT_EQ(reason_text("AssocGrpCPUMinutesLimit"), "a limit of its account is reached");
  EXPECT_EQ(reason_text("SomethingOfNextYear"), "");
}

}  // namespace
}  // namespace stoker::slurm
