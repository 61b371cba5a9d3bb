#include "launch/status/life.h"

#include <gmock/gmock.h>

namespace stoker::launch {
namespace {

using record::State;
using slurm::JobState;
using Kind = SchedulerStatus::Kind;

constexpr double kNow = 1'800'000'000;

RecordedStatus own(State state, std::optional<int> exit_code = std::nullopt) {
  RecordedStatus status;
  status.records.state = state;
  status.records.exit_code = exit_code;
  status.records.attempts = 1;
  status.records.scheduler_job = "7";
  status.records.comment = "stoker:r/1";
  status.records.submitted = kNow - 1000;
  if (state != State::queued) status.records.started = status.records.last_started = kNow - 900;
  return status;
}

SchedulerStatus scheduler_status(JobState state, std::string text = "X") {
  SchedulerStatus status{.kind = Kind::known, .job = {}, .problem = {}};
  status.job.id = "7";
  status.job.state = state;
  status.job.state_text = std::move(text);
  return status;
}

SchedulerStatus nothing(Kind kind) {
  return {.kind = kind, .job = {}, .problem = timeout("squeue: no answer")};
}

Life life(const RecordedStatus& status, const SchedulerStatus& scheduler) {
  return judge_life(status, scheduler, kNow).life;
}

TEST(Life, recorded_ending_takes_precedence_over_scheduler) {
  EXPECT_EQ(life(own(State::done, 0), scheduler_status(JobState::completing)), Life::done);
  EXPECT_EQ(life(own(State::failed, 7), scheduler_status(JobState::failed)), Life::failed);
  EXPECT_EQ(life(own(State::stopped, 75), scheduler_status(JobState::failed)), Life::stopped);
  EXPECT_EQ(life(own(State::stopped, 1), nothing(Kind::not_asked)), Life::timeout);
  for (const RecordedStatus& status : {own(State::done, 0), own(State::failed, 7), own(State::stopped, 75)})
    EXPECT_FALSE(needs_scheduler(status));
}

TEST(Life, ranks_of_a_finally_ended_job_are_not_restarted) {
  RecordedStatus status = own(State::failed, 143);
  EXPECT_EQ(life(status, scheduler_status(JobState::completing)),
            Life::queued);  // it may have been preempted
  status.ending = JobState::timeout;
  EXPECT_EQ(life(status, scheduler_status(JobState::completing)), Life::timeout);
  EXPECT_FALSE(needs_scheduler(status));
  status.ending = JobState::cancelled;
  EXPECT_EQ(life(status, scheduler_status(JobState::completing)), Life::cancelled);
  status.records.may_restart = true;
  EXPECT_EQ(life(status, scheduler_status(JobState::completing)), Life::queued);
}

TEST(Life, a_lost_rank_is_no_ending_while_slurm_has_the_job) {
  RecordedStatus status = own(State::failed, 137);
  status.records.is_loss = true;
  status.records.reason = "rank 0 (n1) was lost";
  EXPECT_FALSE(needs_scheduler(status));  // the allocation of a user continues without the run
  status.was_submitted = true;
  EXPECT_TRUE(needs_scheduler(status));
  EXPECT_EQ(life(status, scheduler_status(JobState::pending)), Life::queued);
  EXPECT_EQ(life(status, scheduler_status(JobState::node_failed)), Life::node_failed);
  for (const SchedulerStatus& over :
       {scheduler_status(JobState::failed), nothing(Kind::not_known), nothing(Kind::no_answer)}) {
    const RunLife run = judge_life(status, over, kNow);
    EXPECT_EQ(run.life, Life::failed);
    EXPECT_EQ(run.note, status.records.reason);
  }
  const RunLife still = judge_life(status, scheduler_status(JobState::running), kNow);
  EXPECT_EQ(still.life, Life::running);
  EXPECT_EQ(still.note, "rank 0 (n1) was lost; its job has not ended, a node may be down");
}

TEST(Life, lost_output_is_part_of_the_note) {
  RecordedStatus status = own(State::done, 0);
  status.records.lost_output = "rank 0 (n1): no space left on device; 3.00 MB of output are missing";
  const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::done);
  EXPECT_EQ(to_text(run), "done (" + status.records.lost_output + ")");
}

TEST(Life, run_without_record_has_the_scheduler_s_ending) {
  for (const RecordedStatus& status :
       {own(State::queued), own(State::running), own(State::lost), own(State::stopped, 143)}) {
    EXPECT_TRUE(needs_scheduler(status));
    EXPECT_EQ(life(status, scheduler_status(JobState::cancelled, "CANCELLED by 1000")), Life::cancelled);
    EXPECT_EQ(life(status, scheduler_status(JobState::timeout)), Life::timeout);
    EXPECT_EQ(life(status, scheduler_status(JobState::out_of_memory)), Life::out_of_memory);
    EXPECT_EQ(life(status, scheduler_status(JobState::node_failed)), Life::node_failed);
    EXPECT_EQ(life(status, scheduler_status(JobState::preempted)), Life::preempted);
    EXPECT_EQ(life(status, scheduler_status(JobState::failed)), Life::failed);
  }
}

TEST(Life, cancelled_run_that_saved_reports_both) {
  RecordedStatus status = own(State::stopped, 75);
  status.records.is_cancelled = true;
  status.records.reason = "interrupted by SIGTERM, stopped after a checkpoint";
  const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::cancelled);
  EXPECT_EQ(run.note, status.records.reason);
}

TEST(Life, what_slurm_wrote_into_the_log_needs_no_scheduler) {
  RecordedStatus status = own(State::stopped, 143);
  status.ending = JobState::timeout;
  EXPECT_FALSE(needs_scheduler(status));
  const RunLife over = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(over.life, Life::timeout);
  EXPECT_EQ(over.note, "reached its time limit");
  status = own(State::failed, 137);  // a rank that Slurm killed
  status.ending = JobState::cancelled;
  EXPECT_EQ(life(status, nothing(Kind::not_asked)), Life::cancelled);
}

TEST(Life, out_of_memory_is_detected_from_slurm_log) {
  RecordedStatus status = own(State::failed, 1);
  status.records.reason = "rank 1 (n2) was lost: its connection broke";
  status.ending = JobState::out_of_memory;
  status.figures = "268 MB of 67.1 MB";
  EXPECT_FALSE(needs_scheduler(status));
  const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::out_of_memory);
  EXPECT_EQ(run.note, "took 268 MB of 67.1 MB");
  EXPECT_EQ(exit_code_of(run), 137);
  status.records.state = State::done;  // a helper process died, the run continued
  EXPECT_EQ(life(status, nothing(Kind::not_asked)), Life::done);
}

TEST(Life, out_of_memory_is_reported_by_the_killed_rank) {
  RecordedStatus status = own(State::failed, 137);
  status.records.scheduler_job = "";
  status.records.reason =
      "rank 1 (a) exited after 2 s: killed by signal 9 (SIGKILL), out of memory (cgroup limit 64 MB)";
  EXPECT_EQ(life(status, nothing(Kind::not_asked)), Life::out_of_memory);
}

TEST(Life, endings_have_distinct_exit_codes) {
  EXPECT_EQ(exit_code_of(Life::done, 0), 0);
  EXPECT_EQ(exit_code_of(Life::failed, 7), 7);
  EXPECT_EQ(exit_code_of(Life::failed, std::nullopt), 1);
  EXPECT_EQ(exit_code_of(Life::stopped, 75), 75);
  EXPECT_EQ(exit_code_of(Life::timeout, 1), 124);
  EXPECT_EQ(exit_code_of(Life::timeout, 75), 75);
  EXPECT_EQ(exit_code_of(Life::cancelled, 143), 130);
  EXPECT_EQ(exit_code_of(Life::out_of_memory, 1), 137);
  for (Life life : {Life::node_failed, Life::preempted, Life::lost})
    EXPECT_EQ(exit_code_of(life, std::nullopt), 3);
}

TEST(Life, what_slurm_starts_again_is_queued_and_not_over) {
  RecordedStatus status = own(State::stopped, 143);
  status.ending = JobState::preempted;
  EXPECT_TRUE(needs_scheduler(status));
  EXPECT_EQ(life(status, scheduler_status(JobState::completing)), Life::queued);
  SchedulerStatus again = scheduler_status(JobState::pending);
  again.job.reason = "BeginTime";
  const RunLife waiting = judge_life(status, again, kNow);
  EXPECT_EQ(waiting.life, Life::queued);
  EXPECT_EQ(waiting.note,
            "BeginTime: it cannot start before its begin time; a requeued job waits about two minutes, "
            "requeued by Slurm");
  EXPECT_FALSE(is_over(waiting.life));
  EXPECT_EQ(life(status, nothing(Kind::not_known)), Life::preempted);
  status.ending = JobState::pending;  // scontrol requeue
  EXPECT_EQ(life(status, nothing(Kind::not_asked)), Life::queued);
}

TEST(Life, queued_run_has_reason_and_expected_start) {
  SchedulerStatus status = scheduler_status(JobState::pending);
  status.job.reason = "Priority";
  status.job.start = kNow + 1500;
  EXPECT_EQ(judge_life(own(State::queued), status, kNow).note,
            "Priority: other jobs have a higher priority, start likely in 25 min 00 s");
  status.job.reason = "SomethingNew";
  status.job.start.reset();
  EXPECT_EQ(judge_life(own(State::queued), status, kNow).note, "SomethingNew");
  EXPECT_EQ(judge_life(own(State::queued), scheduler_status(JobState::running), kNow).note,
            "has its nodes, not started yet");
  EXPECT_EQ(life(own(State::queued), scheduler_status(JobState::unknown)), Life::running);
}

TEST(Life, unanswered_query_keeps_the_recorded_state) {
  const RunLife queued = judge_life(own(State::queued), nothing(Kind::no_answer), kNow);
  EXPECT_EQ(queued.life, Life::unknown);
  EXPECT_EQ(queued.note, "submitted as job 7; squeue: no answer");
  EXPECT_FALSE(is_over(queued.life));
  EXPECT_EQ(judge_life(own(State::running), nothing(Kind::no_answer), kNow).note, "squeue: no answer");
  EXPECT_EQ(life(own(State::running), nothing(Kind::no_answer)), Life::running);
  EXPECT_EQ(life(own(State::lost), nothing(Kind::no_answer)), Life::lost);
}

TEST(Life, unknown_job) {
  EXPECT_EQ(life(own(State::running), nothing(Kind::not_known)), Life::running);
  EXPECT_EQ(life(own(State::lost), nothing(Kind::not_known)), Life::lost);
  const RunLife gone = judge_life(own(State::queued), nothing(Kind::not_known), kNow);
  EXPECT_EQ(gone.life, Life::unknown);
  EXPECT_EQ(gone.note, "job 7 is unknown to Slurm, and the run never started");
  RecordedStatus status = own(State::lost);
  status.records.is_cancelled = true;
  EXPECT_EQ(life(status, nothing(Kind::not_known)), Life::cancelled);
}

TEST(Life, a_submission_that_was_cut_off_never_reached_the_queue) {
  RecordedStatus status = own(State::queued);
  status.records.scheduler_job = "";
  status.records.is_submitting = true;
  EXPECT_TRUE(needs_scheduler(status));
  const RunLife lost = judge_life(status, nothing(Kind::not_known), kNow);
  EXPECT_EQ(lost.life, Life::failed);
  EXPECT_EQ(lost.note, "its submission was interrupted before it reached the queue");
  status.records.submitted = kNow - 5;
  EXPECT_EQ(life(status, nothing(Kind::not_known)), Life::queued);
  EXPECT_EQ(judge_life(status, scheduler_status(JobState::pending), kNow).scheduler_job, "7");
}

TEST(Life, runs_outside_of_a_queue_never_ask) {
  RecordedStatus status = own(State::running);
  status.records.scheduler_job = "";
  EXPECT_FALSE(needs_scheduler(status));
}

TEST(Life, time_limit_is_reported_with_and_without_slurm) {
  for (const char* job : {"7", ""}) {
    RecordedStatus status = own(State::stopped, 1);
    status.records.scheduler_job = job;
    status.records.reason = "time limit 2s (resources.time)";
    EXPECT_FALSE(needs_scheduler(status));
    const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
    EXPECT_EQ(run.life, Life::timeout);
    EXPECT_EQ(run.note, status.records.reason);
    EXPECT_EQ(exit_code_of(run), 124);
  }
}

TEST(Life, a_run_that_saved_before_its_time_was_over_is_stopped_and_no_timeout) {
  RecordedStatus status = own(State::stopped, 75);
  status.records.scheduler_job = "";
  status.records.reason = "time limit 2s (resources.time), stopped after a checkpoint";
  const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::stopped);
  EXPECT_EQ(exit_code_of(run), 75);
}

TEST(Life, every_state_has_a_distinct_text) {
  EXPECT_EQ(to_text(Life::out_of_memory), "out of memory");
  EXPECT_EQ(to_text(Life::node_failed), "node failed");
  EXPECT_EQ(to_text(Life::queued), "queued");
}

// The last attempt of a chain ran in link 2 of 4.
RecordedStatus link(State state, std::optional<int> exit_code) {
  RecordedStatus status = own(state, exit_code);
  status.records.scheduler_job = "7_2";
  status.records.links = 4;
  status.records.link = 2;
  status.records.reason = "stopped after a checkpoint";
  return status;
}

TEST(Life, between_two_links_a_chain_is_queued) {
  const RecordedStatus status = link(State::stopped, 75);
  EXPECT_TRUE(needs_scheduler(status));
  SchedulerStatus next = scheduler_status(JobState::pending);
  next.job.id = "7_[3-4%1]";
  next.job.reason = "Priority";
  const RunLife run = judge_life(status, next, kNow);
  EXPECT_EQ(run.life, Life::queued);
  EXPECT_EQ(run.scheduler_job, "7");
  EXPECT_EQ(run.note,
            "link 3 of 4 is next, Priority: other jobs have a higher priority; last attempt: stopped after a "
            "checkpoint");
  EXPECT_EQ(life(status, nothing(Kind::not_known)), Life::stopped);  // a user cancelled the rest
}

TEST(Life, restartable_run_is_over_only_when_slurm_confirms) {
  RecordedStatus status = own(State::failed, 7);
  status.records.reason = "exit code 7";
  status.records.may_restart = true;
  EXPECT_TRUE(needs_scheduler(status));
  EXPECT_EQ(judge_life(status, scheduler_status(JobState::running), kNow).note,
            "may be requeued; last attempt: exit code 7");
  EXPECT_EQ(life(status, scheduler_status(JobState::pending)), Life::queued);
  EXPECT_EQ(life(status, scheduler_status(JobState::failed)), Life::failed);
}

TEST(Life, abandoned_chain_is_over_with_a_reason) {
  RecordedStatus status = link(State::stopped, 75);
  status.records.has_no_next = true;
  status.records.no_next_reason = "2 attempts in a row without progress";
  EXPECT_FALSE(needs_scheduler(status));
  const RunLife run = judge_life(status, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::stopped);
  EXPECT_EQ(run.note, "stopped after a checkpoint; 2 attempts in a row without progress");
  status = link(State::done, 0);
  EXPECT_FALSE(needs_scheduler(status));
  status = link(State::stopped, 75);
  status.records.link = 4;
  EXPECT_FALSE(needs_scheduler(status));
}

TEST(Life, ended_array_waits_for_late_records_of_running_tasks_only) {
  RecordedStatus status = own(State::queued);
  status.array = ArrayState{.tasks = 9, .waiting = 7, .running = 1, .stopped = 1, .started = kNow - 60};
  SchedulerStatus over = scheduler_status(JobState::cancelled);
  over.job.end = kNow - 1;
  EXPECT_EQ(life(status, over), Life::running);
  status.records.is_cancelled = true;
  EXPECT_EQ(life(status, over), Life::running);
  status.array->running = 0;
  EXPECT_EQ(life(status, over), Life::cancelled);
  over.job.end = kNow - 100;
  status.array->running = 1;
  EXPECT_EQ(life(status, over), Life::cancelled);
}

}  // namespace
}  // namespace stoker::launch
