#include "base/process.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::chrono_literals;

Result<Captured> run(std::vector<std::string> argv) {
  return run_program({.argv = std::move(argv)}, Deadline::after(20s));
}

TEST(Process, gives_output_and_exit_code) {
  const auto captured = run({"sh", "-c", "echo out; echo err >&2; exit 7"});
  ASSERT_TRUE(captured.ok());
  EXPECT_EQ(captured->out, "out\n");
  EXPECT_EQ(captured->err, "err\n");
  EXPECT_EQ(to_text(captured->exit), "exit code 7");
}

TEST(Process, death_by_signal_is_told_apart_from_an_exit_code) {
  const auto captured = run({"sh", "-c", "kill -9 $$"});
  EXPECT_EQ(to_text(captured->exit), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(captured->exit.shell_code(), 137);
}

TEST(Process, a_program_that_cannot_be_executed_is_an_error_not_a_child) {
  EXPECT_EQ(run({"no-such-program-here"}).status().message(),
            "no-such-program-here: no such command in PATH");
  EXPECT_EQ(run({"/no/such"}).status().message(), "/no/such: no such file or directory");
  EXPECT_EQ(run({"/etc/passwd"}).status().message(), "/etc/passwd: permission denied");
  EXPECT_EQ(
      run_program({.argv = {"true"}, .directory = "/no/folder"}, Deadline::after(5s)).status().message(),
      "/no/folder: no such file or directory");
}

TEST(Process, is_killed_at_the_deadline_and_named) {
  const auto captured = run_program({.argv = {"sleep", "60"}}, Deadline::after(50ms));
  EXPECT_EQ(captured.status().code(), Code::timeout);
  EXPECT_EQ(captured.status().message(), "sleep: still running at the deadline");
}

TEST(Process, a_grandchild_that_keeps_the_pipe_does_not_hold_us) {
  const auto captured = run({"sh", "-c", "sleep 5 & echo done"});
  ASSERT_TRUE(captured.ok());
  EXPECT_EQ(captured->out, "done\n");
}

TEST(Process, environment_and_folder_are_as_given) {
  const auto captured = run_program({.argv = {"sh", "-c", "echo $A $B; pwd"},
                                     .environment = Environment{{"A", "1"}, {"PATH", "/bin"}},
                                     .directory = "/"},
                                    Deadline::after(20s));
  EXPECT_EQ(captured->out, "1\n/\n");
}

TEST(Process, output_beyond_the_limit_is_dropped_without_blocking) {
  const auto captured =
      run_program({.argv = {"sh", "-c", "head -c 1000000 /dev/zero"}}, Deadline::after(20s), ByteCount{1000});
  ASSERT_TRUE(captured.ok());
  EXPECT_EQ(captured->out.size(), 1000u);
}

TEST(Process, wait_gives_the_same_answer_again) {
  auto child = Child::spawn({.argv = {"sh", "-c", "exit 3"}});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->wait(Deadline::after(20s))->code, 3);
  EXPECT_EQ(child->wait(Deadline::after(20s))->code, 3);
  EXPECT_TRUE(child->signal(SIGTERM).ok());
}

}  // namespace
}  // namespace stoker
