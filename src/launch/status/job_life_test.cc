#include "launch/status/job_life.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using slurm::JobInfo;
using slurm::JobState;

constexpr double kJobNow = 1'800'000'000;

JobInfo job(JobState state, std::string text = "X") {
  JobInfo facts;
  facts.id = "7";
  facts.state = state;
  facts.state_text = std::move(text);
  return facts;
}

TEST(JobLife, endings_are_distinguished) {
  const std::pair<JobState, Life> kPairs[] = {
      {JobState::completed, Life::done},          {JobState::failed, Life::failed},
      {JobState::timeout, Life::timeout},         {JobState::out_of_memory, Life::out_of_memory},
      {JobState::node_failed, Life::node_failed}, {JobState::preempted, Life::preempted},
      {JobState::cancelled, Life::cancelled},     {JobState::pending, Life::queued},
      {JobState::completing, Life::running},      {JobState::unknown, Life::running}};
  for (const auto& [state, life] : kPairs) EXPECT_EQ(judge_job(job(state), kJobNow).life, life);
  EXPECT_EQ(judge_job(job(JobState::cancelled, "CANCELLED by 1000"), kJobNow).note, "by user 1000");
  EXPECT_EQ(judge_job(job(JobState::unknown, "NEW_IN_2030"), kJobNow).note, "Slurm state NEW_IN_2030");
}

TEST(JobLife, a_failure_names_its_exit_code_and_the_step) {
  JobInfo facts = job(JobState::failed);
  facts.exit_code = 7;
  facts.exit_signal = 0;
  facts.failed = slurm::JobStepInfo{"7.0", JobState::failed, 3, 0};
  JobLife life = judge_job(facts, kJobNow);
  EXPECT_EQ(life.note, "exit code 7, step 7.0: exit code 3");
  EXPECT_EQ(life.exit_code, 7);
  facts.exit_code = 0;
  facts.exit_signal = 9;
  facts.failed->state = JobState::out_of_memory;
  life = judge_job(facts, kJobNow);
  EXPECT_EQ(life.life, Life::out_of_memory);
  EXPECT_EQ(life.note, "step 7.0: out of memory");
  EXPECT_EQ(exit_code_of({life}), 137);
}

TEST(JobLife, success_after_a_failed_step_is_noted) {
  JobInfo facts = job(JobState::completed);
  facts.worst_step_code = 2;
  EXPECT_EQ(judge_job(facts, kJobNow).note, "its script exited with 0, but a step ended with exit code 2");
}

TEST(JobLife, pending_job_has_reason_and_restart_count) {
  JobInfo facts = job(JobState::pending);
  facts.reason = "Priority";
  facts.start = kJobNow + 1500;
  facts.restarts = 2;
  EXPECT_EQ(
      judge_job(facts, kJobNow).note,
      "Priority: other jobs have a higher priority, start likely in 25 min 00 s, requeued 2 times by Slurm");
}

TEST(JobLife, job_log_refines_the_state) {
  LaunchSandbox box;
  TempDirectory folder;
  JobInfo facts = job(JobState::completed);
  facts.log = folder / "slurm-7.out";
  ASSERT_TRUE(write_file(facts.log, "job.sh: line 3: trainer: command not found\n").ok());
  box.scheduler.listed.jobs = {facts};
  auto found = query_job_lives("7", box.scheduler, soon());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->at(0).doubts.size(), 1u);
  EXPECT_EQ(found->at(0).doubts[0].line, 1u);
  facts.state = JobState::failed;
  ASSERT_TRUE(write_file(facts.log,
                         "slurmstepd: error: StepId=7.0 exceeded memory limit (2000 > 1000), being killed\n")
                  .ok());
  box.scheduler.listed.jobs = {facts};
  found = query_job_lives("7", box.scheduler, soon());
  EXPECT_EQ(found->at(0).life, Life::out_of_memory);
  EXPECT_EQ(found->at(0).note, "took 2.00 kB of 1.00 kB");
}

TEST(JobLife, tasks_of_an_array_are_counted) {
  std::vector<JobLife> tasks;
  for (JobState state : {JobState::completed, JobState::running, JobState::completed, JobState::failed})
    tasks.push_back(judge_job(job(state), kJobNow));
  EXPECT_EQ(count_lives(tasks), "1 running, 2 done, 1 failed");
  EXPECT_EQ(combined_life(tasks), Life::running);
  tasks[1].life = Life::done;
  EXPECT_EQ(combined_life(tasks), Life::failed);
  EXPECT_EQ(exit_code_of(tasks), 1);
  tasks.pop_back();
  EXPECT_EQ(combined_life(tasks), Life::done);
  EXPECT_EQ(exit_code_of(tasks), 0);
}

TEST(JobLife, ten_thousand_tasks_are_judged_in_well_under_a_second) {
  LaunchSandbox box;
  for (int i = 0; i < 10'000; ++i) {
    JobInfo facts = job(i % 2 == 0 ? JobState::completed : JobState::pending);
    facts.id = format("8_{}", i);
    box.scheduler.listed.jobs.push_back(facts);
  }
  const MonoTime begin = RealClock().mono();
  const auto found = query_job_lives("8", box.scheduler, soon());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(count_lives(*found), "5 000 queued, 5 000 done");
  EXPECT_LT(Seconds(RealClock().mono() - begin).count(), 1.0);
  EXPECT_EQ(box.scheduler.calls, 1);
}

TEST(WaitForJob, times_out_with_last_known_state_and_honors_should_stop) {
  LaunchSandbox box;
  box.scheduler.listed.jobs = {job(JobState::running)};
  EXPECT_EQ(wait_for_job("7", box.scheduler, {.deadline = Deadline::after(1ms)}, {}).status().to_string(),
            "job 7: has not ended yet (1 running)");
  EXPECT_EQ(wait_for_job("7", box.scheduler, {.should_stop = [] { return true; }}, {}).status().to_string(),
            "job 7: wait cancelled");
  EXPECT_EQ(wait_for_job("9", box.scheduler, {}, {}).status().to_string(), "job 9: unknown to Slurm");
  box.scheduler.listed.jobs = {job(JobState::completed)};
  EXPECT_EQ(wait_for_job("7", box.scheduler, {}, {})->front().life, Life::done);
}

TEST(WaitForJob, interrupted_query_keeps_the_previous_answer) {
  LaunchSandbox box;
  box.scheduler.listed.jobs = {job(JobState::running)};
  const auto silent_from_now_on = [&] {
    box.scheduler.problem = timeout("squeue: no answer within 200 ms");
    return false;
  };
  const WaitOptions options{.deadline = Deadline::after(1200ms), .should_stop = silent_from_now_on};
  EXPECT_EQ(wait_for_job("7", box.scheduler, options, {}).status().to_string(),
            "job 7: has not ended yet (1 running)");
  EXPECT_GT(box.scheduler.calls, 1);
}

}  // namespace
}  // namespace stoker::launch
