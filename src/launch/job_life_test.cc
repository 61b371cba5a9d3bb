#include "launch/job_life.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using slurm::JobFacts;
using slurm::JobState;

constexpr double kJobNow = 1'800'000'000;

JobFacts job(JobState state, std::string text = "X") {
  JobFacts facts;
  facts.id = "7";
  facts.state = state;
  facts.state_text = std::move(text);
  return facts;
}

TEST(JobLife, each_ending_is_told_apart) {
  const std::pair<JobState, Life> kPairs[] = {
      {JobState::completed, Life::done},          {JobState::failed, Life::failed},
      {JobState::timeout, Life::timeout},         {JobState::out_of_memory, Life::out_of_memory},
      {JobState::node_failed, Life::node_failed}, {JobState::preempted, Life::preempted},
      {JobState::cancelled, Life::cancelled},     {JobState::pending, Life::queued},
      {JobState::completing, Life::running},      {JobState::unknown, Life::running}};
  for (const auto& [state, life] : kPairs) EXPECT_EQ(judge_job(job(state), kJobNow).life, life);
  EXPECT_EQ(judge_job(job(JobState::cancelled, "CANCELLED by 1000"), kJobNow).note, "by user 1000");
  EXPECT_EQ(judge_job(job(JobState::unknown, "NEW_IN_2030"), kJobNow).note, "Slurm says NEW_IN_2030");
}

TEST(JobLife, a_failure_names_its_exit_code_and_the_step) {
  JobFacts facts = job(JobState::failed);
  facts.exit_code = 7;
  facts.exit_signal = 0;
  facts.failed = slurm::StepFacts{"7.0", JobState::failed, 3, 0};
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

TEST(JobLife, a_script_that_ended_with_0_after_a_failed_step_says_so) {
  JobFacts facts = job(JobState::completed);
  facts.worst_step_code = 2;
  EXPECT_EQ(judge_job(facts, kJobNow).note, "its script ended with 0, but a step ended with exit code 2");
}

TEST(JobLife, a_waiting_job_says_why_and_how_often_it_was_started) {
  JobFacts facts = job(JobState::pending);
  facts.reason = "Priority";
  facts.start = kJobNow + 1500;
  facts.restarts = 2;
  EXPECT_EQ(
      judge_job(facts, kJobNow).note,
      "Priority: jobs of higher priority are ahead, start likely in 25 min 00 s, started again 2 times by "
      "Slurm");
}

TEST(JobLife, the_log_of_a_job_tells_what_its_state_does_not) {
  Sandbox box;
  TempDirectory folder;
  JobFacts facts = job(JobState::completed);
  facts.log = folder / "slurm-7.out";
  ASSERT_TRUE(write_file(facts.log, "job.sh: line 3: trainer: command not found\n").ok());
  box.scheduler.listed.jobs = {facts};
  auto found = look_at_job("7", box.scheduler, soon());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->at(0).doubts.size(), 1u);
  EXPECT_EQ(found->at(0).doubts[0].line, 1u);
  facts.state = JobState::failed;
  ASSERT_TRUE(write_file(facts.log,
                         "slurmstepd: error: StepId=7.0 exceeded memory limit (2000 > 1000), being killed\n")
                  .ok());
  box.scheduler.listed.jobs = {facts};
  found = look_at_job("7", box.scheduler, soon());
  EXPECT_EQ(found->at(0).life, Life::out_of_memory);
  EXPECT_EQ(found->at(0).note, "took 2.00 kB of 1.00 kB");
}

TEST(JobLife, tasks_of_an_array_are_counted) {
  std::vector<JobLife> tasks;
  for (JobState state : {JobState::completed, JobState::running, JobState::completed, JobState::failed})
    tasks.push_back(judge_job(job(state), kJobNow));
  EXPECT_EQ(count_lives(tasks), "1 running, 2 done, 1 failed");
  EXPECT_EQ(life_of_all(tasks), Life::running);
  tasks[1].life = Life::done;
  EXPECT_EQ(life_of_all(tasks), Life::failed);
  EXPECT_EQ(exit_code_of(tasks), 1);
  tasks.pop_back();
  EXPECT_EQ(life_of_all(tasks), Life::done);
  EXPECT_EQ(exit_code_of(tasks), 0);
}

TEST(JobLife, ten_thousand_tasks_are_judged_in_well_under_a_second) {
  Sandbox box;
  for (int i = 0; i < 10'000; ++i) {
    JobFacts facts = job(i % 2 == 0 ? JobState::completed : JobState::pending);
    facts.id = format("8_{}", i);
    box.scheduler.listed.jobs.push_back(facts);
  }
  const MonoTime begin = RealClock().mono();
  const auto found = look_at_job("8", box.scheduler, soon());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(count_lives(*found), "5 000 queued, 5 000 done");
  EXPECT_LT(Seconds(RealClock().mono() - begin).count(), 1.0);
  EXPECT_EQ(box.scheduler.questions, 1);
}

TEST(WaitForJob, gives_up_with_the_last_it_heard_and_ends_when_told) {
  Sandbox box;
  box.scheduler.listed.jobs = {job(JobState::running)};
  EXPECT_EQ(wait_for_job("7", box.scheduler, {.deadline = Deadline::after(1ms)}, {}).status().to_string(),
            "job 7: not over yet (1 running)");
  EXPECT_EQ(wait_for_job("7", box.scheduler, {.should_stop = [] { return true; }}, {}).status().to_string(),
            "job 7: no longer waited for");
  EXPECT_EQ(wait_for_job("9", box.scheduler, {}, {}).status().to_string(),
            "job 9: Slurm knows none of that id");
  box.scheduler.listed.jobs = {job(JobState::completed)};
  EXPECT_EQ(wait_for_job("7", box.scheduler, {}, {})->front().life, Life::done);
}

TEST(WaitForJob, a_question_that_its_end_cuts_short_does_not_hide_the_answer_before) {
  Sandbox box;
  box.scheduler.listed.jobs = {job(JobState::running)};
  const auto silent_from_now_on = [&] {
    box.scheduler.problem = timeout("squeue: no answer within 200 ms");
    return false;
  };
  const WaitOptions options{.deadline = Deadline::after(1200ms), .should_stop = silent_from_now_on};
  EXPECT_EQ(wait_for_job("7", box.scheduler, options, {}).status().to_string(),
            "job 7: not over yet (1 running)");
  EXPECT_GT(box.scheduler.questions, 1);
}

}  // namespace
}  // namespace stoker::launch
