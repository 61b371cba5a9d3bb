#include "launch/control.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "launch/sandbox.h"
#include "launch/submit.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A run of one attempt that a `stoker run` of this or another machine has begun.
record::RunFolder begun(const Sandbox& box, const record::ProcessIdentity& supervisor) {
  auto run =
      record::RunFolder::create(box.request().job.record.directory, {.name = "digits"}, "name: digits\n");
  CHECK(run.ok());
  const auto attempt = run->start_attempt("name: digits\n");
  CHECK(attempt.ok());
  auto events = record::EventWriter::open(attempt->node_events(0));
  CHECK(events.ok());
  record::AttemptStarted started;
  started.supervisor = supervisor;
  CHECK(write_event(*events, started).ok());
  return *run;
}

std::string refusal(const record::RunFolder& run, Sandbox& box) {
  return plan_cancel(run, box.scheduler, soon()).status().to_string();
}

TEST(Cancel, what_has_not_begun_has_no_end) {
  Sandbox box;
  const auto run =
      record::RunFolder::create(box.request().job.record.directory, {.name = "digits"}, "name: digits\n");
  EXPECT_EQ(refusal(*run, box), format("run {}: has not begun, there is nothing to cancel", run->id()));
  ASSERT_TRUE(run->start_attempt("name: digits\n").ok());
  EXPECT_EQ(refusal(*run, box),
            format("run {}: is just starting\n  try: stoker cancel {}", run->id(), run->id()));
}

TEST(Cancel, a_job_that_may_exist_is_not_taken_for_none) {
  Sandbox box;
  box.scheduler.answer = timeout("sbatch: no answer within 60 s");
  (void)submit(box.request(), box.scheduler, soon());
  box.scheduler.problem = unavailable("squeue: Unable to contact slurm controller (connect failure)");
  const record::RunFolder run = box.runs().at(0);
  EXPECT_EQ(
      refusal(run, box),
      format("run {}: whether it is in the queue is not known (submitted, job not known; squeue: Unable "
             "to contact slurm controller (connect failure))",
             run.id()));
  EXPECT_THAT(box.scheduler.cancelled_ids, ElementsAre());
}

TEST(Cancel, a_run_of_another_machine_is_ended_there) {
  Sandbox box;
  const record::RunFolder run = begun(box, {.host = "n7", .pid = 42, .pid_start = 1, .boot = "b 1"});
  EXPECT_EQ(refusal(run, box),
            format("run {}: runs on n7, outside of a queue\n  try: ssh n7 kill 42", run.id()));
}

TEST(Cancel, a_run_of_this_machine_gets_a_signal) {
  Sandbox box;
  const record::RunFolder run = begun(box, record::this_process());
  const auto plan = plan_cancel(run, box.scheduler, soon());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->how, Cancellation::How::signal);
  EXPECT_EQ(plan->pid, record::this_process().pid);
  EXPECT_EQ(box.scheduler.questions, 0);
}

TEST(Wait, gives_up_with_the_last_it_heard) {
  Sandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  box.scheduler.listed.jobs[0].reason = "Resources";
  const Status given_up =
      wait_for(submitted->folder, box.scheduler, {.deadline = Deadline::after(1ms)}).status();
  EXPECT_EQ(given_up.code(), Code::timeout);
  EXPECT_THAT(std::string(given_up.message()),
              HasSubstr(format("run {}: still queued (Resources", submitted->folder.id())));
}

TEST(Wait, ends_when_it_is_told_to) {
  Sandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  std::vector<Life> heard;
  const Status stopped = wait_for(submitted->folder, box.scheduler,
                                  {.on_change = [&](const RunLife& run) { heard.push_back(run.life); },
                                   .should_stop = [] { return true; }})
                             .status();
  EXPECT_EQ(stopped.to_string(), format("run {}: no longer waited for", submitted->folder.id()));
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_THAT(heard, ElementsAre(Life::queued));
}

TEST(Wait, ends_when_the_run_s_folder_was_removed) {
  Sandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const WaitOptions removed_meanwhile{.deadline = soon(), .on_change = [&](const RunLife&) {
                                        std::filesystem::remove_all(submitted->folder.folder());
                                      }};
  const Status gone = wait_for(submitted->folder, box.scheduler, removed_meanwhile).status();
  EXPECT_EQ(gone.code(), Code::not_found);
  EXPECT_EQ(gone.to_string(), format("run {}: its folder {} is gone: how it ends can no longer be told",
                                     submitted->folder.id(), submitted->folder.folder().string()));
}

TEST(Resume, goes_on_only_from_what_is_surely_over) {
  Sandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const record::RunFolder& run = submitted->folder;
  const auto refused = [&](Life life, const std::string& note = "") {
    return resume_request(run, {.life = life, .note = note, .scheduler_job = "100"}, {}).status().to_string();
  };
  EXPECT_EQ(refused(Life::running),
            format("run {}: is still running\n  try: stoker logs -f {}", run.id(), run.id()));
  EXPECT_EQ(refused(Life::done), format("run {}: is done, there is nothing to resume", run.id()));
  EXPECT_EQ(refused(Life::queued),
            format("run {}: waits in the queue as job 100\n  try: stoker status {}", run.id(), run.id()));
  EXPECT_EQ(refused(Life::unknown, "squeue: no answer within 10 s"),
            format("run {}: whether it still waits or runs is not known (squeue: no answer within 10 s)",
                   run.id()));
  EXPECT_EQ(refused(Life::failed), "ok");
}

}  // namespace
}  // namespace stoker::launch
