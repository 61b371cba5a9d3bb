#include "rank/single/single.h"

#include <csignal>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Box {
 public:
  Result<SingleEnding> run(const std::string& shell) {
    options.command = {"/bin/sh", "-c", shell};
    options.environment = {{"PATH", "/usr/bin:/bin"}, {"HERE", box_.path().string()}};
    options.environment.insert(options.environment.end(), more.begin(), more.end());
    options.log = box_ / "log";
    options.grace = 10s;
    return run_single(options);
  }
  std::string log() const { return *read_file(box_ / "log"); }
  Path path(const char* name) const { return box_ / name; }
  bool has(const char* name) const { return path_exists(path(name)); }
  /// Sends the signal to this process once the file exists.
  std::thread signal_when(const char* name, int signal) const {
    return std::thread([this, name, signal] {
      for (int i = 0; i < 3000 && !has(name); ++i) ::usleep(10'000);
      ::kill(::getpid(), signal);
    });
  }

  SingleOptions options;
  Environment more;

 private:
  TempDirectory box_;
};

// The mask of run_single must apply to every thread before a signal arrives.
class Single : public ::testing::Test {
 protected:
  void SetUp() override {
    sigset_t set;
    ::sigemptyset(&set);
    for (int signal : {SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
};

TEST_F(Single, is_a_world_of_one_and_its_output_is_added_to_the_log) {
  Box box;
  for (int turn = 0; turn < 2; ++turn) {
    const auto ending = box.run("echo $RANK/$WORLD_SIZE $MASTER_ADDR; echo bad >&2");
    ASSERT_TRUE(ending.ok()) << ending.status().to_string();
    EXPECT_EQ(ending->outcome, record::Outcome::done);
  }
  EXPECT_EQ(box.log(), "0/1 127.0.0.1\nbad\n0/1 127.0.0.1\nbad\n");
}

TEST_F(Single, reports_exit_status) {
  Box box;
  const auto failed = box.run("exit 7");
  EXPECT_EQ(failed->outcome, record::Outcome::failed);
  EXPECT_EQ(failed->exit_code, 7);
  EXPECT_EQ(failed->cause, "exit code 7");
  EXPECT_EQ(box.run("kill -9 $$")->cause, "killed by signal 9 (SIGKILL)");
  box.options.command = {};
  SingleOptions options = box.options;
  options.command = {"/no/such/program"};
  EXPECT_EQ(run_single(options).status().code(), Code::not_found);
}

TEST_F(Single, a_checkpoint_is_claimed_only_where_there_is_one) {
  Box box;
  box.more = {{"STOKER_CHECKPOINT_DIR", box.path("checkpoints").string()}};
  const auto without = box.run("exit 75");
  EXPECT_EQ(without->outcome, record::Outcome::stopped);
  EXPECT_EQ(without->exit_code, 75);
  EXPECT_EQ(without->cause,
            "exit code 75 (saved and stopped), but there is no checkpoint (STOKER_CHECKPOINT_DIR)");
  EXPECT_EQ(box.run("mkdir $STOKER_CHECKPOINT_DIR; : > $STOKER_CHECKPOINT_DIR/a.pt; exit 75")->cause,
            "stopped after a checkpoint");
}

TEST_F(Single, nothing_that_it_started_outlives_it) {
  Box box;
  const auto ending = box.run("setsid sleep 300 & echo $! > $HERE/pid");
  ASSERT_TRUE(ending.ok());
  std::int64_t pid = 0;
  ASSERT_TRUE(parse_number(trim(*read_file(box.options.log.parent_path() / "pid")), &pid));
  EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0);
}

TEST_F(Single, orphans_are_reaped_while_it_runs) {
  Box box;
  const auto ending = box.run(
      "for i in 1 2 3 4 5; do (true &); done\n"
      "for i in $(seq 200); do\n"
      "  set -- $(cat /proc/$PPID/task/*/children)\n"
      "  test $# = 1 && exit\n"
      "  sleep 0.05\n"
      "done\n"
      "exit 9");
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->exit_code, 0);
}

TEST_F(Single, its_time_ends_it_after_it_was_asked_to_save) {
  Box box;
  box.options.deadline = unix_seconds(RealClock().wall()) + 1;
  box.options.deadline_text = "time limit 1s (resources.time)";
  box.options.notice = 900ms;
  const auto ending = box.run("trap 'echo asked' USR1; while :; do sleep 0.05; done");
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->cause, "time limit 1s (resources.time)");
  EXPECT_EQ(ending->exit_code, 1);
  EXPECT_EQ(box.log(), "asked\n");
}

TEST_F(Single, an_interrupt_reaches_it_and_decides_the_ending) {
  Box box;
  std::thread sender = box.signal_when("ready", SIGTERM);
  const auto ending =
      box.run("trap 'echo received; exit 3' TERM; touch $HERE/ready; while :; do sleep 0.05; done");
  sender.join();
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->outcome, record::Outcome::stopped);
  EXPECT_EQ(ending->exit_code, 143);
  EXPECT_EQ(ending->interrupted_by, SIGTERM);
  EXPECT_THAT(box.log(), HasSubstr("received\n"));
}

// As with Slurm: the command of a shell dies first, the shell reports it and exits, and the signal to this
// process follows.
TEST_F(Single, what_reached_the_processes_before_us_is_no_failure) {
  for (const char* end : {"(sleep 0.2; kill -TERM $PPID) & exit 143", "kill -TERM $PPID; exit 2"}) {
    Box box;
    const auto ending = box.run(end);
    ASSERT_TRUE(ending.ok());
    EXPECT_EQ(ending->outcome, record::Outcome::stopped) << end;
    EXPECT_EQ(ending->exit_code, 143) << end;
  }
}

TEST_F(Single, unrequested_signal_death_is_a_failure) {
  Box box;
  const auto ending = box.run("kill -TERM $$");
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->outcome, record::Outcome::failed);
  EXPECT_EQ(ending->interrupted_by, 0);
}

}  // namespace
}  // namespace stoker::rank
