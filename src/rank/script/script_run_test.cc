#include "rank/script/script_run.h"

#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "rank/process/process_tree.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// A run with one attempt, and a separate process that runs a script in it, because signals affect the
// whole process.
class Scripts {
 public:
  Scripts() : folder_(*record::RunFolder::create(box_ / "runs", {.name = "demo"}, "run: x\n")) {
    attempt_ = *folder_.start_attempt("run: x\n");
  }

  pid_t start(const std::string& body, std::vector<std::string> arguments = {},
              std::function<void()> background_task = nullptr) {
    const Path script = box_ / "slurm_script";
    STOKER_CHECK(write_file(script, "#!/bin/bash\n" + body).ok());
    STOKER_CHECK(::chmod(script.c_str(), 0700) == 0);
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setpgid(0, 0);
    ::setenv("OUT", (box_ / "out").c_str(), 1);
    STOKER_CHECK(::freopen((box_ / "log").c_str(), "w", stdout) != nullptr);
    ScriptRun run{.attempt = *attempt_};
    run.command = {script.string()};
    run.command.insert(run.command.end(), arguments.begin(), arguments.end());
    run.environment = current_environment();
    run.scheduler_job = "7";
    run.background_task = std::move(background_task);
    const auto exit = run_script(run);
    ::_exit(exit.ok() ? exit->shell_code() : 99);
  }
  int wait(pid_t pid) {
    int status = 0;
    STOKER_CHECK(::waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // The output of the script in $OUT, once it ends with `end`.
  std::string out(std::string_view end = "") const {
    const Deadline deadline = Deadline::after(60s);
    for (;;) {
      const auto text = read_file(box_ / "out");
      if ((text.ok() && text->ends_with(end)) || deadline.passed()) return text.ok() ? *text : "";
      RealClock().sleep(5ms);
    }
  }
  Path path(const char* name) const { return box_ / name; }
  Path folder() const { return folder_.folder(); }
  std::string log() const { return *read_file(attempt_->log(0)); }
  record::RunState state() const { return record::derive_state(folder_); }

 private:
  TempDirectory box_;
  record::RunFolder folder_;
  std::optional<record::Attempt> attempt_;
};

TEST(ScriptRun, keeps_arguments_exit_code_and_output) {
  Scripts scripts;
  EXPECT_EQ(scripts.wait(scripts.start("printf '%s|' \"${0##*/}\" \"$@\"; exit 7", {"a b", "$(x)", "é"})), 7);
  EXPECT_EQ(scripts.log(), "slurm_script|a b|$(x)|é|");
  const record::RunState state = scripts.state();
  EXPECT_EQ(state.state, record::State::failed);
  EXPECT_EQ(state.exit_code, 7);
  EXPECT_EQ(state.reason, "the script ended: exit code 7");
  EXPECT_EQ(state.scheduler_job, "7");
}

TEST(ScriptRun, a_script_that_ends_well_is_done) {
  Scripts scripts;
  EXPECT_EQ(scripts.wait(scripts.start("true")), 0);
  EXPECT_EQ(scripts.state().state, record::State::done);
}

TEST(ScriptRun, a_script_that_a_signal_killed_ended_by_it) {
  Scripts scripts;
  EXPECT_EQ(scripts.wait(scripts.start("kill -SEGV $$")), 128 + SIGSEGV);
  EXPECT_EQ(scripts.state().reason, "the script ended: killed by signal 11 (SIGSEGV)");
}

TEST(ScriptRun, a_moved_run_folder_is_recorded_and_the_exit_code_is_the_script_s) {
  Scripts scripts;
  const std::string run = scripts.folder().string(), moved = scripts.path("moved").string();
  EXPECT_EQ(scripts.wait(scripts.start("mv \"$1\" \"$2\"", {run, moved})), 0);
  const auto opened = record::RunFolder::open(moved);
  ASSERT_TRUE(opened.ok());
  const record::RunState state = record::derive_state(*opened);
  EXPECT_EQ(state.state, record::State::done);
  EXPECT_EQ(
      state.lost_output,
      format("run folder {}: was moved to {} during the run; new files are not written there", run, moved));
}

TEST(ScriptRun, a_signal_for_the_batch_process_alone_reaches_the_script_once) {
  Scripts scripts;
  const pid_t pid = scripts.start(
      "trap 'echo usr1 >> $OUT; exit 75' USR1\n"
      "echo ready > $OUT\n"
      "while :; do sleep 0.05; done");
  EXPECT_EQ(scripts.out("ready\n"), "ready\n");
  ::kill(pid, SIGUSR1);
  EXPECT_EQ(scripts.wait(pid), 75);
  EXPECT_EQ(scripts.out(), "ready\nusr1\n");
  EXPECT_EQ(scripts.state().state, record::State::stopped);
}

TEST(ScriptRun, broadcast_signal_is_not_forwarded_again) {
  Scripts scripts;
  // The script finds its sibling processes, including the canary, and signals all of them like Slurm.
  const pid_t pid = scripts.start(
      "trap 'echo term >> $OUT' TERM\n"
      "echo ready > $OUT\n"
      "canary=$(cat /proc/$PPID/task/$PPID/children)\n"
      "kill -TERM $PPID $canary\n"
      "for _ in $(seq 20); do sleep 0.05; done\n"
      "exit 3");
  EXPECT_EQ(scripts.wait(pid), 3);
  EXPECT_EQ(scripts.out("term\n"), "ready\nterm\n");
  EXPECT_EQ(scripts.state().reason, "ended by SIGTERM");
}

// As with Slurm: the child of the script dies first, the script reports it and exits, then this process is
// signalled.
TEST(ScriptRun, signal_that_reached_the_script_first_is_no_failure) {
  for (const char* end : {"exit 143", "kill -TERM $$", "kill -TERM $PPID; exit 2"}) {
    Scripts scripts;
    const pid_t pid = scripts.start(format("echo ready > $OUT\n{}\n", end));
    EXPECT_EQ(scripts.out("ready\n"), "ready\n");
    ::kill(pid, SIGTERM);
    scripts.wait(pid);
    EXPECT_EQ(scripts.state().state, record::State::stopped) << end;
    EXPECT_EQ(scripts.state().reason, "ended by SIGTERM") << end;
  }
}

TEST(ScriptRun, background_processes_end_with_the_script) {
  Scripts scripts;
  const Path pid_file = scripts.path("pid");
  const pid_t script = scripts.start("until test -s ${OUT%out}pid; do sleep 0.01; done", {}, [&] {
    Command command;
    command.argv = {"/bin/sh", "-c",
                    format("sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait", pid_file.string())};
    (void)run_program(command, Deadline::after(60s));
  });
  EXPECT_EQ(scripts.wait(script), 0);
  std::int64_t pid = 0;
  ASSERT_TRUE(parse_number(trim(*read_file(pid_file)), &pid));
  const auto is_gone = [pid] {
    const auto facts = process_facts(static_cast<pid_t>(pid));
    return !facts.ok() || facts->state == 'Z';  // its parent may not reap it
  };
  const Deadline deadline = Deadline::after(10s);
  while (!is_gone() && !deadline.passed()) RealClock().sleep(5ms);
  EXPECT_TRUE(is_gone());
}

TEST(ScriptRun, kill_0_in_a_script_ends_what_it_started_and_is_recorded) {
  Scripts scripts;
  EXPECT_EQ(scripts.wait(scripts.start("sleep 100 & kill 0; wait")), 128 + SIGTERM);
  EXPECT_EQ(scripts.state().reason, "the script ended: killed by signal 15 (SIGTERM)");
}

}  // namespace
}  // namespace stoker::rank
