#include "record/state.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::record {
namespace {

/// A run with events that a test writes in place of the supervisors.
class RunInProgress {
 public:
  RunInProgress() : run_(make(box_ / "runs")) {}

  Attempt begin_attempt() { return *run_.start_attempt("name: x\n"); }
  void started(const Attempt& attempt, const ProcessIdentity& who, double time = 100, int node = 0) {
    write(attempt, node, time, kAttemptStarted,
          {{"node", std::int64_t{node}},
           {"host", who.host},
           {"pid", who.pid},
           {"pid_start", who.pid_start},
           {"boot", who.boot}});
  }
  void ended(const Attempt& attempt, Outcome outcome, int exit_code, double time = 200, int node = 0) {
    write(attempt, node, time, kAttemptEnded,
          {{"node", std::int64_t{node}},
           {"outcome", std::string(to_text(outcome))},
           {"exit_code", std::int64_t{exit_code}},
           {"first_rank", std::int64_t{node}},
           {"reason", format("node {} reported {}", node, to_text(outcome))}});
  }
  RunState state(const LivenessOptions& options = {}) const { return derive_state(run_, options); }
  const RunFolder& run() const { return run_; }

 private:
  static RunFolder make(const Path& runs) {
    RunDescription what;
    what.name = "test";
    return *RunFolder::create(runs, what, "name: x\n");
  }
  void write(const Attempt& attempt, int node, double time, std::string_view kind,
             std::vector<Field> fields) {
    auto writer = EventWriter::open(attempt.node_events(node));
    ASSERT_TRUE(writer->write_at(time, kind, fields).ok());
  }

  TempDirectory box_;
  RunFolder run_;
};

ProcessIdentity elsewhere() { return {"another-host", 1, 1, "boot"}; }

/// The identity of a process that has just ended.
ProcessIdentity dead() {
  ProcessIdentity who = this_process();
  const pid_t child = ::fork();
  if (child == 0) _exit(0);
  ::waitpid(child, nullptr, 0);
  who.pid = child;
  return who;
}

TEST(State, a_run_without_an_attempt_is_created) {
  RunInProgress run;
  EXPECT_EQ(run.state().state, State::created);
  EXPECT_EQ(run.state().attempts, 0);
}

TEST(State, an_attempt_that_has_not_reported_yet_is_running_then_lost) {
  RunInProgress run;
  run.begin_attempt();
  EXPECT_EQ(run.state().state, State::running);
  const RunState later = run.state({.now = 4e9});
  EXPECT_EQ(later.state, State::lost);
  EXPECT_EQ(later.reason, "attempt 1 did not report its start");
}

TEST(State, is_running_while_the_supervisor_lives) {
  RunInProgress run;
  run.started(run.begin_attempt(), this_process());
  const RunState state = run.state({.now = 4e9});  // silence does not matter on this host
  EXPECT_EQ(state.state, State::running);
  EXPECT_EQ(state.started, 100);
  EXPECT_EQ(state.ended, 0);
}

TEST(State, is_lost_if_the_supervisor_is_gone_without_a_result) {
  RunInProgress run;
  const ProcessIdentity who = dead();
  run.started(run.begin_attempt(), who);
  const RunState state = run.state();
  EXPECT_EQ(state.state, State::lost);
  EXPECT_EQ(state.reason, format("its supervisor (process {} on {}) is gone without recording a result",
                                 who.pid, who.host));
  EXPECT_GT(state.ended, 1.5e9);
}

TEST(State, a_reused_pid_is_not_the_supervisor) {
  RunInProgress run;
  ProcessIdentity who = this_process();
  who.pid_start -= 1;
  run.started(run.begin_attempt(), who);
  EXPECT_EQ(run.state().state, State::lost);
}

TEST(State, a_zombie_is_not_alive) {
  RunInProgress run;
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ProcessIdentity who = this_process();
  const auto stat = read_pseudo_file(format("/proc/{}/stat", child));
  who.pid = child;
  const std::string fields = stat->substr(stat->rfind(')') + 2);
  ASSERT_TRUE(parse_number(split(fields, ' ')[19], &who.pid_start));
  run.started(run.begin_attempt(), who);
  EXPECT_EQ(run.state().state, State::running);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(run.state().state, State::lost);
  ::waitpid(child, nullptr, 0);
}

TEST(State, on_another_host_or_boot_depends_on_silence) {
  RunInProgress run;
  run.started(run.begin_attempt(), elsewhere());
  EXPECT_EQ(run.state().state, State::running);
  EXPECT_EQ(run.state({.now = 4e9}).state, State::lost);
}

TEST(State, has_ended_once_every_node_has_a_result) {
  struct Case {
    Outcome outcome;
    int exit_code;
    State state;
  };
  for (const Case& c : {Case{Outcome::done, 0, State::done}, Case{Outcome::failed, 7, State::failed},
                        Case{Outcome::stopped, 75, State::stopped}}) {
    RunInProgress run;
    const Attempt attempt = run.begin_attempt();
    run.started(attempt, elsewhere());
    run.ended(attempt, c.outcome, c.exit_code);
    const RunState state = run.state();
    EXPECT_EQ(state.state, c.state);
    EXPECT_EQ(state.exit_code, c.exit_code);
    EXPECT_EQ(state.started, 100);
    EXPECT_EQ(state.ended, 200);
  }
}

TEST(State, the_earliest_failure_determines_the_result) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  for (int node = 0; node < 3; ++node) run.started(attempt, elsewhere(), 100 + node, node);
  run.ended(attempt, Outcome::stopped, 75, 300, 0);
  run.ended(attempt, Outcome::failed, 7, 302, 1);
  run.ended(attempt, Outcome::failed, 9, 301, 2);
  const RunState state = run.state();
  EXPECT_EQ(state.state, State::failed);
  EXPECT_EQ(state.exit_code, 9);
  EXPECT_EQ(state.first_rank, 2);
  EXPECT_EQ(state.reason, "node 2 reported failed");
  EXPECT_EQ(state.ended, 302);
}

TEST(State, one_node_gone_and_another_failed_is_failed) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  run.started(attempt, dead(), 100, 0);
  run.started(attempt, elsewhere(), 100, 1);
  run.ended(attempt, Outcome::failed, 7, 300, 1);
  EXPECT_EQ(run.state().state, State::failed);
}

TEST(State, uses_the_last_attempt_and_the_start_of_the_first) {
  RunInProgress run;
  const Attempt first = run.begin_attempt();
  run.started(first, elsewhere(), 100);
  run.ended(first, Outcome::failed, 9, 150);
  const Attempt second = run.begin_attempt();
  run.started(second, elsewhere(), 200);
  run.ended(second, Outcome::done, 0, 250);
  const RunState state = run.state();
  EXPECT_EQ(state.state, State::done);
  EXPECT_EQ(state.attempts, 2);
  EXPECT_EQ(state.last_attempt, 2);
  EXPECT_EQ(state.started, 100);
  EXPECT_EQ(state.ended, 250);
}

TEST(State, a_submitted_attempt_is_queued_until_it_begins) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  auto events = EventWriter::open(attempt.submit_events());
  ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1"}).ok());
  RunState state = run.state({.now = 4e9});
  EXPECT_EQ(state.state, State::queued);
  EXPECT_TRUE(state.is_submitting);
  EXPECT_EQ(state.comment, "stoker:r/1");
  ASSERT_TRUE(write_event(*events, Submitted{"812345"}).ok());
  state = run.state({.now = 4e9});
  EXPECT_EQ(state.state, State::queued);
  EXPECT_FALSE(state.is_submitting);
  EXPECT_EQ(state.scheduler_job, "812345");
  run.started(attempt, this_process());
  EXPECT_EQ(run.state().state, State::running);
  EXPECT_EQ(run.state().scheduler_job, "812345");
}

TEST(State, an_array_has_ended_once_all_its_tasks_have) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  auto events = EventWriter::open(attempt.submit_events());
  ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1", 2}).ok());
  const auto task = [&](int number) { return *EventWriter::open(attempt.node_events(number)); };
  EventWriter first = task(1);
  ASSERT_TRUE(write_event(first, AttemptStarted{.node = 1, .supervisor = this_process()}).ok());
  EXPECT_EQ(run.state().state, State::running);
  ASSERT_TRUE(write_event(first, AttemptEnded{.node = 1, .exit_code = 0}).ok());
  EXPECT_EQ(run.state().state, State::queued);
  EXPECT_EQ(run.state().reason, "1 of 2 tasks have ended");
  EventWriter second = task(2);
  ASSERT_TRUE(write_event(second, AttemptStarted{.node = 2, .supervisor = this_process()}).ok());
  ASSERT_TRUE(write_event(second, AttemptEnded{.node = 2, .exit_code = 0}).ok());
  EXPECT_EQ(run.state().state, State::done);
  // Slurm restarts one of them.
  ASSERT_TRUE(write_event(first, AttemptStarted{.node = 1, .supervisor = this_process()}).ok());
  EXPECT_EQ(run.state().state, State::running);
}

TEST(State, a_refused_submission_has_failed_with_a_reason) {
  RunInProgress run;
  auto events = EventWriter::open(run.begin_attempt().submit_events());
  ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1"}).ok());
  ASSERT_TRUE(write_event(*events, SubmitFailed{"sbatch: Invalid account"}).ok());
  const RunState state = run.state();
  EXPECT_EQ(state.state, State::failed);
  EXPECT_EQ(state.reason, "sbatch: Invalid account");
  EXPECT_FALSE(state.is_submitting);
}

TEST(State, accepted_jobs_of_a_refused_array_are_queued_unless_withdrawn) {
  for (const bool is_withdrawn : {false, true}) {
    RunInProgress run;
    auto events = EventWriter::open(run.begin_attempt().submit_events());
    ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1"}).ok());
    ASSERT_TRUE(write_event(*events, Submitted{"701"}).ok());
    ASSERT_TRUE(write_event(*events, SubmitFailed{"sbatch: limit", is_withdrawn}).ok());
    const RunState state = run.state();
    EXPECT_EQ(state.state, is_withdrawn ? State::failed : State::queued);
    EXPECT_EQ(state.reason, is_withdrawn ? "sbatch: limit" : "");
  }
}

TEST(State, records_a_cancel_request) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  run.started(attempt, this_process());
  EXPECT_FALSE(run.state().is_cancelled);
  auto events = EventWriter::open(attempt.cancel_events());
  ASSERT_TRUE(write_event(*events, CancelRequested{"ana", "login1"}).ok());
  EXPECT_TRUE(run.state().is_cancelled);
  EXPECT_EQ(run.state().state, State::running);
}

TEST(State, the_link_of_a_chain_comes_from_the_last_attempt) {
  RunInProgress run;
  const Attempt first = run.begin_attempt();
  auto events = EventWriter::open(first.submit_events());
  ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1"}).ok());
  ASSERT_TRUE(write_event(*events, Submitted{"812", 4, {"/runs/etl"}}).ok());
  EXPECT_EQ(run.state().links, 4);
  EXPECT_EQ(run.state().link, 0);
  EXPECT_EQ(run.state().after, std::vector<std::string>{"/runs/etl"});
  const Attempt second = run.begin_attempt();
  AttemptStarted started;
  started.supervisor = this_process();
  started.scheduler_job = "812_2";
  started.links = 4;
  started.may_restart = true;
  auto own = EventWriter::open(second.node_events(0));
  ASSERT_TRUE(write_event(*own, started).ok());
  EXPECT_EQ(run.state().link, 2);
  EXPECT_EQ(run.state().links, 4);
  EXPECT_EQ(run.state().scheduler_job, "812_2");
  EXPECT_TRUE(run.state().may_restart);
  EXPECT_FALSE(run.state().has_no_next);
  auto next = EventWriter::open(second.next_events());
  ASSERT_TRUE(write_event(*next, NoNextAttempt{"failed (restart.failed: 0)"}).ok());
  EXPECT_TRUE(run.state().has_no_next);
  EXPECT_EQ(run.state().no_next_reason, "failed (restart.failed: 0)");
}

TEST(State, a_run_abandoned_before_its_start_has_failed_with_a_reason) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  auto events = EventWriter::open(attempt.submit_events());
  ASSERT_TRUE(write_event(*events, Submitting{"login1", "stoker:r/1"}).ok());
  auto next = EventWriter::open(attempt.next_events());
  ASSERT_TRUE(write_event(*next, NoNextAttempt{"after: run etl: failed"}).ok());
  EXPECT_EQ(run.state().state, State::failed);
  EXPECT_EQ(run.state().reason, "after: run etl: failed");
}

TEST(State, damaged_events_count_as_silence) {
  RunInProgress run;
  const Attempt attempt = run.begin_attempt();
  ASSERT_TRUE(write_file(attempt.node_events(0), "\xff\xfe{{{\n[1,2\n").ok());
  EXPECT_EQ(run.state().state, State::running);
  EXPECT_EQ(run.state({.now = 4e9}).state, State::lost);
}

TEST(State, identifies_this_process) {
  const ProcessIdentity who = this_process();
  EXPECT_EQ(who.pid, ::getpid());
  EXPECT_GT(who.pid_start, 0);
  EXPECT_NE(who.boot.find("pid:["), std::string::npos);
}

}  // namespace
}  // namespace stoker::record
