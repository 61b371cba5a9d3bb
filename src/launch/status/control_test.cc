#include "launch/status/control.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "launch/sandbox.h"
#include "launch/start/submit.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A run with one attempt, started by a `stoker run` on this or a different machine.
record::RunFolder begun(const LaunchSandbox& box, const record::ProcessIdentity& supervisor) {
  auto run =
      record::RunFolder::create(box.request().job.record.directory, {.name = "digits"}, "name: digits\n");
  STOKER_CHECK(run.ok());
  const auto attempt = run->start_attempt("name: digits\n");
  STOKER_CHECK(attempt.ok());
  auto events = record::EventWriter::open(attempt->node_events(0));
  STOKER_CHECK(events.ok());
  record::AttemptStarted started;
  started.supervisor = supervisor;
  STOKER_CHECK(write_event(*events, started).ok());
  return *run;
}

std::string refusal(const record::RunFolder& run, LaunchSandbox& box) {
  return plan_cancel(run, box.scheduler, soon()).status().to_string();
}

TEST(Cancel, run_without_attempt_cannot_be_cancelled) {
  LaunchSandbox box;
  const auto run =
      record::RunFolder::create(box.request().job.record.directory, {.name = "digits"}, "name: digits\n");
  EXPECT_EQ(refusal(*run, box), format("run {}: has not started, nothing to cancel", run->id()));
  ASSERT_TRUE(run->start_attempt("name: digits\n").ok());
  EXPECT_EQ(refusal(*run, box),
            format("run {}: is just starting\n  try: stoker cancel {}", run->id(), run->id()));
}

TEST(Cancel, possibly_existing_job_is_not_ignored) {
  LaunchSandbox box;
  box.scheduler.answer = timeout("sbatch: no answer within 60 s");
  (void)submit(box.request(), box.scheduler, soon());
  box.scheduler.problem = unavailable("squeue: Unable to contact slurm controller (connect failure)");
  const record::RunFolder run = box.runs().at(0);
  EXPECT_EQ(refusal(run, box), format("run {}: unknown whether it is in the queue (submitted, job unknown; "
                                      "squeue: Unable to contact slurm controller (connect failure))",
                                      run.id()));
  EXPECT_THAT(box.scheduler.cancelled_ids, ElementsAre());
}

TEST(Cancel, remote_run_is_cancelled_on_its_machine) {
  LaunchSandbox box;
  const record::RunFolder run = begun(box, {.host = "n7", .pid = 42, .pid_start = 1, .boot = "b 1"});
  EXPECT_EQ(refusal(run, box),
            format("run {}: runs on n7, outside a queue\n  try: ssh n7 kill 42", run.id()));
}

TEST(Cancel, local_run_gets_a_signal) {
  LaunchSandbox box;
  const record::RunFolder run = begun(box, record::this_process());
  const auto plan = plan_cancel(run, box.scheduler, soon());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->how, Cancellation::How::signal);
  EXPECT_EQ(plan->pid, record::this_process().pid);
  EXPECT_EQ(box.scheduler.calls, 0);
}

TEST(Wait, times_out_with_last_known_state) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  box.scheduler.listed.jobs[0].reason = "Resources";
  const Status given_up =
      wait_for(submitted->folder, box.scheduler, {.deadline = Deadline::after(1ms)}).status();
  EXPECT_EQ(given_up.code(), Code::timeout);
  EXPECT_THAT(std::string(given_up.message()),
              HasSubstr(format("run {}: still queued (Resources", submitted->folder.id())));
}

TEST(Wait, ends_when_should_stop) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  std::vector<Life> reported;
  const Status stopped = wait_for(submitted->folder, box.scheduler,
                                  {.on_change = [&](const RunLife& run) { reported.push_back(run.life); },
                                   .should_stop = [] { return true; }})
                             .status();
  EXPECT_EQ(stopped.to_string(), format("run {}: wait cancelled", submitted->folder.id()));
  EXPECT_EQ(stopped.code(), Code::cancelled);
  EXPECT_THAT(reported, ElementsAre(Life::queued));
}

TEST(Wait, ends_when_the_run_s_folder_was_removed) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const WaitOptions removed_meanwhile{.deadline = soon(), .on_change = [&](const RunLife&) {
                                        std::filesystem::remove_all(submitted->folder.folder());
                                      }};
  const Status gone = wait_for(submitted->folder, box.scheduler, removed_meanwhile).status();
  EXPECT_EQ(gone.code(), Code::not_found);
  EXPECT_EQ(gone.to_string(), format("run {}: its folder {} was removed: its end is unknown",
                                     submitted->folder.id(), submitted->folder.folder().string()));
}

TEST(Resume, resume_requires_a_confirmed_end) {
  LaunchSandbox box;
  const auto submitted = submit(box.request(), box.scheduler, soon());
  const record::RunFolder& run = submitted->folder;
  const auto refused = [&](Life life, const std::string& note = "") {
    return resume_request(run, {.life = life, .note = note, .scheduler_job = "100"}, {}).status().to_string();
  };
  EXPECT_EQ(refused(Life::running),
            format("run {}: is still running\n  try: stoker logs -f {}", run.id(), run.id()));
  EXPECT_EQ(
      refused(Life::done),
      format("run {}: is done, there is nothing to resume\n  try: stoker rerun {}      (starts a new run)",
             run.id(), run.id()));
  EXPECT_EQ(refused(Life::queued),
            format("run {}: is queued as job 100\n  try: stoker status {}", run.id(), run.id()));
  EXPECT_EQ(
      refused(Life::unknown, "squeue: no answer within 10 s"),
      format("run {}: unknown whether it is queued or running (squeue: no answer within 10 s)", run.id()));
  EXPECT_EQ(refused(Life::failed), "ok");
}

}  // namespace
}  // namespace stoker::launch
