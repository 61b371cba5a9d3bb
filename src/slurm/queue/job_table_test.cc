#include "slurm/queue/job_table.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

JobList table(std::string_view text) {
  auto list = parse_job_table("squeue", text);
  EXPECT_TRUE(list.ok()) << list.status().to_string();
  return list.ok() ? *list : JobList{};
}

TEST(JobIds, distinguishes_a_task_from_the_submitted_job) {
  EXPECT_EQ(base_job_id("812"), "812");
  EXPECT_EQ(base_job_id("812_17"), "812");
  EXPECT_EQ(base_job_id("812_[18-60%20]"), "812");
  EXPECT_EQ(array_task("812_17"), 17);
  EXPECT_FALSE(array_task("812").has_value());
  EXPECT_FALSE(array_task("812_[18-60%20]").has_value());
}

TEST(JobTable, finds_columns_by_name_at_any_position) {
  const JobList list = table(
      "JOBID|STATE|REASON|START_TIME|END_TIME|PARTITION|NODELIST|COMMENT\n"
      "12|PENDING|Priority|1795255200|N/A|gpu||stoker:r/1\n"
      "13|RUNNING|None|1795255200|1795258800|cpu|n[1-2]|(null)\n");
  ASSERT_THAT(list.jobs, SizeIs(2));
  EXPECT_EQ(list.jobs[0].state, JobState::pending);
  EXPECT_EQ(list.jobs[0].reason, "Priority");
  EXPECT_EQ(list.jobs[0].start, 1795255200.0);
  EXPECT_EQ(list.jobs[0].end, std::nullopt);
  EXPECT_EQ(list.jobs[0].comment, "stoker:r/1");
  EXPECT_EQ(list.jobs[1].reason, "");
  EXPECT_EQ(list.jobs[1].nodes, "n[1-2]");
  EXPECT_EQ(list.jobs[1].comment, "");
  EXPECT_EQ(list.damaged, 0u);
  const JobList turned = table("JobID|ExitCode|NewInNextRelease|State\n7|9:0|x|FAILED\n");
  ASSERT_THAT(turned.jobs, SizeIs(1));
  EXPECT_EQ(turned.jobs[0].exit_code, 9);
  EXPECT_EQ(turned.jobs[0].state, JobState::failed);
}

TEST(JobTable, ignores_banners_and_invalid_lines) {
  const JobList list = table(
      "*** maintenance on Monday | 8:00 ***\r\nJOBID|STATE|COMMENT\r\n12|RUNNING|a|b|c\r\n"
      "rubbish\n13\n|RUNNING|\n\nx|RUNNING|\n14|PENDING|last, without an end");
  ASSERT_THAT(list.jobs, SizeIs(2));
  EXPECT_EQ(list.jobs[0].comment, "a|b|c");
  EXPECT_EQ(list.jobs[1].comment, "last, without an end");
  EXPECT_EQ(list.damaged, 4u);
}

TEST(JobTable, ignores_steps_but_includes_unsplit_arrays) {
  const JobList list = table(
      "JobID|State\n812345|COMPLETED\n812345.batch|COMPLETED\n812345.0|COMPLETED\n"
      "812301_17|RUNNING\n812301_[18-60%20]|PENDING\n");
  ASSERT_THAT(list.jobs, SizeIs(3));
  EXPECT_EQ(list.jobs[1].id, "812301_17");
  EXPECT_EQ(list.jobs[2].id, "812301_[18-60%20]");
  EXPECT_NE(list.find("812301_17"), nullptr);
  EXPECT_EQ(list.find("4711"), nullptr);
}

TEST(JobTable, reports_the_first_failed_step_of_a_job) {
  const JobList list = table(
      "JobID|State|ExitCode|DerivedExitCode\n7|COMPLETED|0:0|2:0\n7.batch|COMPLETED|0:0|\n7.0|FAILED|2:0|\n"
      "7.1|OUT_OF_MEMORY|0:125|\n8|FAILED|1:0|0:0\n8.0|RUNNING|0:0|\n9.0|FAILED|1:0|\n");
  ASSERT_THAT(list.jobs, SizeIs(2));
  ASSERT_TRUE(list.jobs[0].failed.has_value());
  EXPECT_EQ(list.jobs[0].failed->id, "7.0");
  EXPECT_EQ(list.jobs[0].failed->exit_code, 2);
  EXPECT_EQ(list.jobs[0].worst_step_code, 2);
  EXPECT_FALSE(list.jobs[1].failed.has_value());
}

TEST(JobIndex, finds_the_entries_of_a_list) {
  const JobList list = table(
      "JOBID|STATE|COMMENT\n812301_17|RUNNING|stoker:r/1\n812301_[18-60%20]|PENDING|(null)\n12|PENDING|\n");
  const JobIndex index(list);
  EXPECT_EQ(index.by_id("812301_17"), &list.jobs[0]);
  EXPECT_EQ(index.by_comment("stoker:r/1"), &list.jobs[0]);
  EXPECT_EQ(index.by_id("4711"), nullptr);
  EXPECT_EQ(index.by_comment(""), nullptr);
}

TEST(JobTable, a_table_needs_a_header) {
  EXPECT_EQ(parse_job_table("squeue", "").status().to_string(), "squeue: printed no table of jobs");
  EXPECT_EQ(parse_job_table("sacct", "12|RUNNING\n").status().to_string(), "sacct: printed no table of jobs");
  EXPECT_EQ(parse_job_table("squeue", "").status().code(), Code::corrupt);
  EXPECT_THAT(table("JOBID|STATE\n").jobs, IsEmpty());
}

TEST(JobRecords, values_may_contain_spaces_and_span_lines) {
  const auto list = parse_job_records(
      "JobId=12 JobName=my job UserId=a(1) JobState=COMPLETED Reason=None Dependency=(null) Restarts=2 "
      "ExitCode=0:15 StartTime=1795255200 EndTime=2026-11-21T10:03:11 Comment=a b=c NodeList=n[1-2]\n"
      "JobId=13 ArrayJobId=12 ArrayTaskId=1\n   JobState=RUNNING Reason=None\n");
  ASSERT_TRUE(list.ok());
  ASSERT_THAT(list->jobs, SizeIs(2));
  EXPECT_EQ(list->jobs[0].name, "my job");
  EXPECT_EQ(list->jobs[0].restarts, 2);
  EXPECT_EQ(list->jobs[0].exit_code, 0);
  EXPECT_EQ(list->jobs[0].exit_signal, 15);
  EXPECT_EQ(list->jobs[0].nodes, "n[1-2]");
  EXPECT_TRUE(list->jobs[0].end.has_value());
  EXPECT_EQ(list->jobs[1].state, JobState::running);
  EXPECT_EQ(list->jobs[1].id, "12_1");
  EXPECT_EQ(list->jobs[0].user, "a");
  EXPECT_EQ(parse_job_records("No jobs in the system\n").status().to_string(), "scontrol: printed no job");
  EXPECT_EQ(parse_job_records("JobId=x JobState=RUNNING JobId=4 JobName=n").status().to_string(),
            "scontrol: printed no job");
}

TEST(Submitted, the_id_is_the_last_valid_line) {
  EXPECT_EQ(*parse_sbatch_output("812345\n"), "812345");
  EXPECT_EQ(*parse_sbatch_output("Welcome! 3 news\n2026\n812345;jean-zay\n"), "812345");
  EXPECT_EQ(parse_sbatch_output("Submitted batch job\n").status().to_string(), "sbatch: printed no job id");
  EXPECT_EQ(parse_sbatch_output("").status().code(), Code::corrupt);
}

TEST(SlurmTime, is_seconds_or_local_time_or_nothing) {
  EXPECT_EQ(parse_slurm_time("1795255200"), 1795255200.0);
  EXPECT_TRUE(parse_slurm_time("2026-11-21T10:03:11").has_value());
  for (const char* none : {"N/A", "Unknown", "None", "", "0", "-5", "99999999999999999999", "2026-11-21"}) {
    EXPECT_EQ(parse_slurm_time(none), std::nullopt) << none;
  }
}

TEST(JobId, is_digits_with_a_task_or_component) {
  for (const char* id : {"1", "812301_17", "812400+1"}) EXPECT_TRUE(is_job_id(id)) << id;
  for (const char* id : {"", "_", "1_", "a", "1;2", "1 2", "-1", "1_2_3", "1.0", "9999999999999999999"})
    EXPECT_FALSE(is_job_id(id)) << id;
}

}  // namespace
}  // namespace stoker::slurm
