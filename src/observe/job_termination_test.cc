#include "observe/job_termination.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using slurm::JobState;

constexpr std::string_view kLog =
    "run r_digits_ab12   in runs/\n"
    "slurmstepd-n1: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:14:08 DUE TO PREEMPTION ***\n"
    "run r_digits_ab12   attempt 2, from the start: there is no checkpoint yet\n"
    "slurmstepd-n1: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:20:00 DUE TO JOB REQUEUE ***\n"
    "run r_digits_ab12   attempt 3, from the start: there is no checkpoint yet\n"
    "all is well\n";

std::optional<JobState> ending(std::string_view log, int first, int number) {
  const auto found = slurm::last_termination(attempt_section(log, "r_digits_ab12", first, number), "9");
  return found ? std::optional(found->state) : std::nullopt;
}

TEST(JobTermination, each_attempt_of_one_log_has_its_own) {
  EXPECT_EQ(ending(kLog, 1, 1), JobState::preempted);
  EXPECT_EQ(ending(kLog, 1, 2), JobState::pending);
  EXPECT_EQ(ending(kLog, 1, 3), std::nullopt);
  EXPECT_EQ(attempt_section(kLog, "r_digits_ab12", 1, 4), "");
}

TEST(JobTermination, assigns_the_end_of_a_long_log_to_its_attempts) {
  const std::string_view end = kLog.substr(kLog.find('\n') + 1);
  EXPECT_EQ(ending(end, 0, 1), JobState::preempted);
  EXPECT_EQ(ending(end, 0, 2), JobState::pending);
  EXPECT_EQ(ending(end, 0, 3), std::nullopt);
  EXPECT_EQ(attempt_section("step 1\nstep 2\n", "r_digits_ab12", 0, 3), "step 1\nstep 2\n");
}

TEST(JobTermination, output_of_a_training_starts_no_attempt) {
  const std::string log = "run other   attempt 2, from x\nrun r_digits_ab12   attempt two, x\n";
  EXPECT_EQ(attempt_section(log, "r_digits_ab12", 1, 1), log);
}

TEST(JobTermination, a_requeued_attempt_is_read_from_the_log_of_its_submission) {
  TempDirectory box;
  auto run = record::RunFolder::create(box / "runs", {.name = "digits"}, "name: digits\n");
  ASSERT_TRUE(run.ok());
  const auto first = run->start_attempt("name: digits\n");
  const auto second = run->start_attempt("name: digits\n");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(job_termination(*run, *second, "9").has_value());
  const std::string log = format(
      "run {}   in runs/\nslurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-21T15:14:08 DUE TO "
      "NODE FAILURE ***\nrun {}   attempt 2, from x\nslurmstepd: error: StepId=9.0 exceeded memory limit "
      "(2000 > 1000), being killed\n",
      run->id(), run->id());
  ASSERT_TRUE(write_file(first->batch_log(), log).ok());
  EXPECT_EQ(job_termination(*run, *first, "9")->state, JobState::node_failed);
  EXPECT_EQ(job_termination(*run, *second, "9")->state, JobState::out_of_memory);
  EXPECT_EQ(job_termination(*run, *second, "9")->figures, "2.00 kB of 1.00 kB");
  EXPECT_FALSE(job_termination(*run, *second, "").has_value());
}

TEST(JobTermination, an_earlier_recorded_end_counts_except_before_a_preemption) {
  const slurm::JobTermination limit{.state = JobState::timeout, .time = 1000.0, .figures = ""};
  const slurm::JobTermination preempted{.state = JobState::preempted, .time = 1000.0, .figures = ""};
  EXPECT_TRUE(explains_end(limit, 0, std::nullopt));
  EXPECT_TRUE(explains_end(limit, 999.5, 1));
  EXPECT_FALSE(explains_end(limit, 900, 7));
  EXPECT_FALSE(explains_end(limit, 900, 143)) << "somebody else sent SIGTERM";
  EXPECT_TRUE(explains_end(preempted, 900, 143)) << "within the grace time";
  EXPECT_FALSE(explains_end(preempted, 900, 7)) << "it had failed before";
}

TEST(JobTermination, a_requeue_has_a_separate_text) {
  EXPECT_EQ(termination_text(JobState::pending), "requeued");
  EXPECT_EQ(termination_text(JobState::out_of_memory), "out of memory");
  EXPECT_EQ(termination_text(JobState::node_failed), "node failed");
}

}  // namespace
}  // namespace stoker::observe
