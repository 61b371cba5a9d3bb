#include "launch/life.h"

#include <gmock/gmock.h>

namespace stoker::launch {
namespace {

using record::State;
using slurm::JobState;
using Kind = SchedulerWord::Kind;

constexpr double kNow = 1'800'000'000;

OwnWord own(State state, std::optional<int> exit_code = std::nullopt) {
  OwnWord word;
  word.records.state = state;
  word.records.exit_code = exit_code;
  word.records.attempts = 1;
  word.records.scheduler_job = "7";
  word.records.comment = "stoker:r/1";
  word.records.submitted = kNow - 1000;
  if (state != State::queued) word.records.started = word.records.last_started = kNow - 900;
  return word;
}

SchedulerWord says(JobState state, std::string text = "X") {
  SchedulerWord word{.kind = Kind::known, .job = {}, .problem = {}};
  word.job.id = "7";
  word.job.state = state;
  word.job.state_text = std::move(text);
  return word;
}

SchedulerWord nothing(Kind kind) {
  return {.kind = kind, .job = {}, .problem = timeout("squeue: no answer")};
}

Life life(const OwnWord& word, const SchedulerWord& scheduler) {
  return judge_life(word, scheduler, kNow).life;
}

TEST(Life, what_the_run_says_of_its_own_end_counts_before_the_scheduler) {
  EXPECT_EQ(life(own(State::done, 0), says(JobState::completing)), Life::done);
  EXPECT_EQ(life(own(State::failed, 7), says(JobState::failed)), Life::failed);
  EXPECT_EQ(life(own(State::stopped, 75), says(JobState::failed)), Life::stopped);
  EXPECT_EQ(life(own(State::stopped, 1), nothing(Kind::not_asked)), Life::timeout);
  for (const OwnWord& word : {own(State::done, 0), own(State::failed, 7), own(State::stopped, 75)})
    EXPECT_FALSE(wants_scheduler(word));
}

TEST(Life, ranks_that_slurm_ended_with_their_job_for_good_are_not_started_again) {
  OwnWord word = own(State::failed, 143);
  EXPECT_EQ(life(word, says(JobState::completing)), Life::queued);  // it may have been preempted
  word.ending = JobState::timeout;
  EXPECT_EQ(life(word, says(JobState::completing)), Life::timeout);
  EXPECT_FALSE(wants_scheduler(word));
  word.ending = JobState::cancelled;
  EXPECT_EQ(life(word, says(JobState::completing)), Life::cancelled);
  word.records.may_restart = true;
  EXPECT_EQ(life(word, says(JobState::completing)), Life::queued);
}

TEST(Life, a_lost_rank_is_no_ending_while_slurm_has_the_job) {
  OwnWord word = own(State::failed, 137);
  word.records.is_loss = true;
  word.records.reason = "rank 0 (n1) was lost";
  EXPECT_FALSE(wants_scheduler(word));  // somebody's own allocation: it goes on without the run
  word.was_submitted = true;
  EXPECT_TRUE(wants_scheduler(word));
  EXPECT_EQ(life(word, says(JobState::pending)), Life::queued);
  EXPECT_EQ(life(word, says(JobState::node_failed)), Life::node_failed);
  for (const SchedulerWord& over :
       {says(JobState::failed), nothing(Kind::not_known), nothing(Kind::no_answer)}) {
    const RunLife run = judge_life(word, over, kNow);
    EXPECT_EQ(run.life, Life::failed);
    EXPECT_EQ(run.note, word.records.reason);
  }
  const RunLife still = judge_life(word, says(JobState::running), kNow);
  EXPECT_EQ(still.life, Life::running);
  EXPECT_EQ(still.note, "rank 0 (n1) was lost; its job is not over, Slurm may miss a node");
}

TEST(Life, a_run_without_an_ending_ended_as_the_scheduler_says) {
  for (const OwnWord& word :
       {own(State::queued), own(State::running), own(State::lost), own(State::stopped, 143)}) {
    EXPECT_TRUE(wants_scheduler(word));
    EXPECT_EQ(life(word, says(JobState::cancelled, "CANCELLED by 1000")), Life::cancelled);
    EXPECT_EQ(life(word, says(JobState::timeout)), Life::timeout);
    EXPECT_EQ(life(word, says(JobState::out_of_memory)), Life::out_of_memory);
    EXPECT_EQ(life(word, says(JobState::node_failed)), Life::node_failed);
    EXPECT_EQ(life(word, says(JobState::preempted)), Life::preempted);
    EXPECT_EQ(life(word, says(JobState::failed)), Life::failed);
  }
}

TEST(Life, a_cancelled_run_that_saved_in_time_says_both) {
  OwnWord word = own(State::stopped, 75);
  word.records.is_cancelled = true;
  word.records.reason = "interrupted by SIGTERM, stopped after a checkpoint";
  const RunLife run = judge_life(word, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::cancelled);
  EXPECT_EQ(run.note, word.records.reason);
}

TEST(Life, what_slurm_wrote_into_the_log_needs_no_scheduler) {
  OwnWord word = own(State::stopped, 143);
  word.ending = JobState::timeout;
  EXPECT_FALSE(wants_scheduler(word));
  const RunLife over = judge_life(word, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(over.life, Life::timeout);
  EXPECT_EQ(over.note, "its time limit was over");
  word = own(State::failed, 137);  // a rank that Slurm killed
  word.ending = JobState::cancelled;
  EXPECT_EQ(life(word, nothing(Kind::not_asked)), Life::cancelled);
}

TEST(Life, lack_of_memory_is_told_from_a_failure_by_slurms_own_word) {
  OwnWord word = own(State::failed, 1);
  word.records.reason = "rank 1 (n2) was lost: its connection broke";
  word.ending = JobState::out_of_memory;
  word.figures = "268 MB of 67.1 MB";
  EXPECT_FALSE(wants_scheduler(word));
  const RunLife run = judge_life(word, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::out_of_memory);
  EXPECT_EQ(run.note, "took 268 MB of 67.1 MB; rank 1 (n2) was lost: its connection broke");
  EXPECT_EQ(exit_code_of(run), 137);
  word.records.state = State::done;  // it lost a helper process and came through
  EXPECT_EQ(life(word, nothing(Kind::not_asked)), Life::done);
}

TEST(Life, lack_of_memory_is_told_by_the_rank_that_was_killed_for_it) {
  OwnWord word = own(State::failed, 137);
  word.records.scheduler_job = "";
  word.records.reason =
      "rank 1 (a) left after 2 s: killed by signal 9 (SIGKILL), out of memory (cgroup limit 64 MB)";
  EXPECT_EQ(life(word, nothing(Kind::not_asked)), Life::out_of_memory);
}

TEST(Life, each_ending_has_an_exit_code_of_its_own) {
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
  OwnWord word = own(State::stopped, 143);
  word.ending = JobState::preempted;
  EXPECT_TRUE(wants_scheduler(word));
  EXPECT_EQ(life(word, says(JobState::completing)), Life::queued);
  SchedulerWord again = says(JobState::pending);
  again.job.reason = "BeginTime";
  const RunLife waiting = judge_life(word, again, kNow);
  EXPECT_EQ(waiting.life, Life::queued);
  EXPECT_EQ(
      waiting.note,
      "BeginTime: it may not start before its begin time; a requeued job waits about two minutes, started "
      "again by Slurm");
  EXPECT_FALSE(is_over(waiting.life));
  EXPECT_EQ(life(word, nothing(Kind::not_known)), Life::preempted);
  word.ending = JobState::pending;  // scontrol requeue
  EXPECT_EQ(life(word, nothing(Kind::not_asked)), Life::queued);
}

TEST(Life, a_queued_run_says_why_it_waits_and_how_long) {
  SchedulerWord word = says(JobState::pending);
  word.job.reason = "Priority";
  word.job.start = kNow + 1500;
  EXPECT_EQ(judge_life(own(State::queued), word, kNow).note,
            "Priority: jobs of higher priority are ahead, start likely in 25 min 00 s");
  word.job.reason = "SomethingNew";
  word.job.start.reset();
  EXPECT_EQ(judge_life(own(State::queued), word, kNow).note, "SomethingNew");
  EXPECT_EQ(judge_life(own(State::queued), says(JobState::running), kNow).note,
            "has its nodes, not begun yet");
  EXPECT_EQ(life(own(State::queued), says(JobState::unknown)), Life::running);
}

TEST(Life, a_scheduler_that_gives_no_answer_leaves_what_the_records_say) {
  const RunLife queued = judge_life(own(State::queued), nothing(Kind::no_answer), kNow);
  EXPECT_EQ(queued.life, Life::unknown);
  EXPECT_EQ(queued.note, "submitted as job 7; squeue: no answer");
  EXPECT_FALSE(is_over(queued.life));
  EXPECT_EQ(judge_life(own(State::running), nothing(Kind::no_answer), kNow).note, "squeue: no answer");
  EXPECT_EQ(life(own(State::running), nothing(Kind::no_answer)), Life::running);
  EXPECT_EQ(life(own(State::lost), nothing(Kind::no_answer)), Life::lost);
}

TEST(Life, a_job_that_nobody_knows_any_more) {
  EXPECT_EQ(life(own(State::running), nothing(Kind::not_known)), Life::running);
  EXPECT_EQ(life(own(State::lost), nothing(Kind::not_known)), Life::lost);
  const RunLife gone = judge_life(own(State::queued), nothing(Kind::not_known), kNow);
  EXPECT_EQ(gone.life, Life::unknown);
  EXPECT_EQ(gone.note, "Slurm knows no job 7 (any more), and it never began");
  OwnWord word = own(State::lost);
  word.records.is_cancelled = true;
  EXPECT_EQ(life(word, nothing(Kind::not_known)), Life::cancelled);
}

TEST(Life, a_submission_that_was_cut_off_never_reached_the_queue) {
  OwnWord word = own(State::queued);
  word.records.scheduler_job = "";
  word.records.is_submitting = true;
  EXPECT_TRUE(wants_scheduler(word));
  const RunLife lost = judge_life(word, nothing(Kind::not_known), kNow);
  EXPECT_EQ(lost.life, Life::failed);
  EXPECT_EQ(lost.note, "never reached the queue: its submission was cut off");
  word.records.submitted = kNow - 5;
  EXPECT_EQ(life(word, nothing(Kind::not_known)), Life::queued);
  EXPECT_EQ(judge_life(word, says(JobState::pending), kNow).scheduler_job, "7");
}

TEST(Life, runs_outside_of_a_queue_never_ask) {
  OwnWord word = own(State::running);
  word.records.scheduler_job = "";
  EXPECT_FALSE(wants_scheduler(word));
}

TEST(Life, a_run_whose_time_is_over_says_so_with_slurm_and_without) {
  for (const char* job : {"7", ""}) {
    OwnWord word = own(State::stopped, 1);
    word.records.scheduler_job = job;
    word.records.reason = "time 2s is over (resources.time)";
    EXPECT_FALSE(wants_scheduler(word));
    const RunLife run = judge_life(word, nothing(Kind::not_asked), kNow);
    EXPECT_EQ(run.life, Life::timeout);
    EXPECT_EQ(run.note, word.records.reason);
    EXPECT_EQ(exit_code_of(run), 124);
  }
}

TEST(Life, a_run_that_saved_before_its_time_was_over_is_stopped_and_no_timeout) {
  OwnWord word = own(State::stopped, 75);
  word.records.scheduler_job = "";
  word.records.reason = "time 2s is over (resources.time), stopped after a checkpoint";
  const RunLife run = judge_life(word, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::stopped);
  EXPECT_EQ(exit_code_of(run), 75);
}

TEST(Life, every_word_is_told_apart) {
  EXPECT_EQ(to_text(Life::out_of_memory), "out of memory");
  EXPECT_EQ(to_text(Life::node_failed), "node failed");
  EXPECT_EQ(to_text(Life::queued), "queued");
}

// The last attempt of a chain ran in its second link of four.
OwnWord link(State state, std::optional<int> exit_code) {
  OwnWord word = own(state, exit_code);
  word.records.scheduler_job = "7_2";
  word.records.links = 4;
  word.records.link = 2;
  word.records.reason = "stopped after a checkpoint";
  return word;
}

TEST(Life, between_two_links_a_chain_is_queued) {
  const OwnWord word = link(State::stopped, 75);
  EXPECT_TRUE(wants_scheduler(word));
  SchedulerWord next = says(JobState::pending);
  next.job.id = "7_[3-4%1]";
  next.job.reason = "Priority";
  const RunLife run = judge_life(word, next, kNow);
  EXPECT_EQ(run.life, Life::queued);
  EXPECT_EQ(run.scheduler_job, "7");
  EXPECT_EQ(
      run.note,
      "link 3 of 4 comes next, Priority: jobs of higher priority are ahead; the last one: stopped after a "
      "checkpoint");
  EXPECT_EQ(life(word, nothing(Kind::not_known)), Life::stopped);  // somebody withdrew the rest
}

TEST(Life, a_run_that_may_be_started_again_is_not_over_before_slurm_says_so) {
  OwnWord word = own(State::failed, 7);
  word.records.reason = "exit code 7";
  word.records.may_restart = true;
  EXPECT_TRUE(wants_scheduler(word));
  EXPECT_EQ(judge_life(word, says(JobState::running), kNow).note,
            "may be started again; the last one: exit code 7");
  EXPECT_EQ(life(word, says(JobState::pending)), Life::queued);
  EXPECT_EQ(life(word, says(JobState::failed)), Life::failed);
}

TEST(Life, a_chain_that_gave_up_is_over_and_says_why) {
  OwnWord word = link(State::stopped, 75);
  word.records.has_no_next = true;
  word.records.no_next_reason = "2 attempts in a row without progress";
  EXPECT_FALSE(wants_scheduler(word));
  const RunLife run = judge_life(word, nothing(Kind::not_asked), kNow);
  EXPECT_EQ(run.life, Life::stopped);
  EXPECT_EQ(run.note, "stopped after a checkpoint; 2 attempts in a row without progress");
  word = link(State::done, 0);
  EXPECT_FALSE(wants_scheduler(word));
  word = link(State::stopped, 75);
  word.records.link = 4;
  EXPECT_FALSE(wants_scheduler(word));
}

TEST(Life, an_array_whose_jobs_are_over_waits_for_late_records_of_those_that_ran_and_no_others) {
  OwnWord word = own(State::queued);
  word.array = ArrayState{.tasks = 9, .waiting = 7, .running = 1, .stopped = 1, .started = kNow - 60};
  SchedulerWord over = says(JobState::cancelled);
  over.job.end = kNow - 1;
  EXPECT_EQ(life(word, over), Life::running);
  word.records.is_cancelled = true;
  EXPECT_EQ(life(word, over), Life::running);
  word.array->running = 0;
  EXPECT_EQ(life(word, over), Life::cancelled);
  over.job.end = kNow - 100;
  word.array->running = 1;
  EXPECT_EQ(life(word, over), Life::cancelled);
}

}  // namespace
}  // namespace stoker::launch
