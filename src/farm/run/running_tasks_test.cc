#include "farm/run/running_tasks.h"

#include <csignal>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sanitizers.h"
#include "farm/run/task_process.h"

namespace stoker::farm {
namespace {

class RunningTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kHasThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses a child that shares memory";
  }
  void start(const std::string& line, const TaskNeeds& needs = {}) {
    auto starter = TaskStarter::create({{"PATH", "/usr/bin:/bin"}}, {}, {});
    auto pid = starter->start({.command = line, .variables = {}, .output_fd = output_->fd(), .cores = {}});
    ASSERT_TRUE(pid.ok());
    pid_ = *pid;
    RunningTask task{.pid = pid_, .grant = {}, .needs = needs};
    task.started = clock_.mono();
    tasks_.add(std::move(task));
  }
  // Waits for the end of the process, which stays a child.
  void wait() const {
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

  TempDirectory folder_;
  Result<File> output_ = File::open_append(folder_ / "out");
  TaskList list_ = *TaskList::parse("t.txt", "true\n", {}, {});
  FakeClock clock_;
  RunningTasks tasks_{list_, clock_};
  pid_t pid_ = -1;
};

TEST_F(RunningTasksTest, an_exit_code_is_a_failure) {
  start("exit 7");
  wait();
  clock_.advance(std::chrono::seconds(3));
  const auto ended = tasks_.next_ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, TaskOutcome::failed);
  EXPECT_EQ(ended->why, "exit code 7");
  EXPECT_EQ(ended->seconds, 3);
  EXPECT_TRUE(tasks_.is_idle());
}

TEST_F(RunningTasksTest, a_task_that_slurm_ends_is_held_until_the_worker_is_stopped_too) {
  start("kill -TERM $$");
  wait();
  EXPECT_FALSE(tasks_.next_ended());
  EXPECT_EQ(tasks_.size(), 0U);
  EXPECT_FALSE(tasks_.is_idle());
  EXPECT_FALSE(tasks_.next_held());
  tasks_.stop_all(TaskStop::request, SIGTERM);
  const auto ended = tasks_.next_held();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, TaskOutcome::stopped);
  EXPECT_TRUE(tasks_.is_idle());
}

TEST_F(RunningTasksTest, a_task_that_a_signal_of_its_user_ends_has_failed) {
  start("kill -TERM $$");
  wait();
  EXPECT_FALSE(tasks_.next_ended());
  clock_.advance(std::chrono::seconds(1));
  const auto ended = tasks_.next_held();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, TaskOutcome::failed);
  EXPECT_EQ(ended->exit.signal, SIGTERM);
}

TEST_F(RunningTasksTest, a_task_is_stopped_after_its_time) {
  start("exec sleep 1000", {.time = std::chrono::seconds(5)});
  tasks_.check_limits();
  EXPECT_FALSE(tasks_.next_ended());
  clock_.advance(std::chrono::seconds(6));
  tasks_.check_limits();
  wait();
  const auto ended = tasks_.next_ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, TaskOutcome::timeout);
  EXPECT_EQ(ended->why, "longer than 5s");
}

TEST_F(RunningTasksTest, a_task_that_does_not_stop_is_killed_after_a_grace_time) {
  start("exec sleep 1000");
  tasks_.stop_all(TaskStop::request, SIGCONT);
  clock_.advance(std::chrono::seconds(9));
  tasks_.check_limits();
  EXPECT_FALSE(tasks_.next_ended());
  clock_.advance(std::chrono::seconds(1));
  tasks_.check_limits();
  wait();
  const auto ended = tasks_.next_ended();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, TaskOutcome::stopped);
}

}  // namespace
}  // namespace stoker::farm
