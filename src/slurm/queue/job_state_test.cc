#include "slurm/queue/job_state.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

TEST(JobState, reads_full_compact_and_cut_words_of_every_release) {
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

TEST(JobState, a_word_that_is_not_known_is_not_an_end) {
  for (const char* word : {"", "+", "HIBERNATING", "COMPLETEDISH", "C+", "COMPLETED\x01"}) {
    EXPECT_EQ(parse_job_state(word), JobState::unknown) << word;
    EXPECT_FALSE(is_over(parse_job_state(word))) << word;
  }
}

TEST(JobState, what_may_still_run_is_not_over) {
  for (const char* word : {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "STOPPED"}) {
    EXPECT_FALSE(is_over(parse_job_state(word))) << word;
  }
  for (const char* word : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL",
                           "PREEMPTED", "DEADLINE", "BOOT_FAIL"}) {
    EXPECT_TRUE(is_over(parse_job_state(word))) << word;
  }
}

TEST(JobState, reasons_of_waiting_are_put_in_words) {
  EXPECT_EQ(reason_words("Priority"), "jobs of higher priority are ahead");
  EXPECT_EQ(reason_words("ReqNodeNotAvail, UnavailableNodes:n3"),
            "a node it asks for is down, drained or reserved");
  EXPECT_EQ(reason_words("QOSMaxGRESPerUser"), "a limit of its quality of service is reached");
  EXPECT_EQ(reason_words("AssocGrpCPUMinutesLimit"), "a limit of its account is reached");
  EXPECT_EQ(reason_words("SomethingOfNextYear"), "");
}

}  // namespace
}  // namespace stoker::slurm
