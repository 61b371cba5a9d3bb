#include "base/process.h"

#include <signal.h>
#include <sys/stat.h>

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

// A program of this text in a folder of its own, started there as ./program.
Status start(std::string_view text) {
  TempDirectory folder;
  EXPECT_TRUE(write_file(folder / "program", text).ok());
  EXPECT_EQ(::chmod((folder / "program").c_str(), 0755), 0);
  return run_program({.argv = {"./program"}, .directory = folder.path()}, Deadline::after(20s)).status();
}

TEST(Process, a_script_whose_first_line_asks_for_what_is_not_there_says_so) {
  const Status missing = start("#! /nonexistent/python -u\n");
  EXPECT_EQ(missing.message(),
            "./program: its first line asks for '/nonexistent/python', which is not there");
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_EQ(start("#!/nonexistent/python").message(), missing.message());
  EXPECT_EQ(start("#!/bin/sh\nexit 3\n").to_string(), "ok");
}

TEST(Process, a_script_with_windows_line_ends_is_told_with_what_takes_them_away) {
  const Status windows = start("#!/bin/sh\r\necho one\r\n");
  EXPECT_EQ(windows.message(),
            "./program: its first line asks for '/bin/sh\\r', which is not there: the file has Windows line "
            "ends");
  EXPECT_EQ(windows.code(), Code::not_found);
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "a b", "#!/usr/bin/env python3\r\n").ok());
  const Status first_line = check_first_line(folder / "a b", "./a b");
  EXPECT_EQ(first_line.message(),
            "./a b: its first line asks for '/usr/bin/env python3\\r', which is not there: the file has "
            "Windows line ends");
  EXPECT_EQ(first_line.cure(), format("sed -i 's/\\r$//' '{}/a b'", folder.path()));
}

TEST(Process, a_first_line_is_looked_at_in_scripts_alone) {
  TempDirectory folder;
  for (std::string_view text : {"", "#!", "#!\n", "# !/no/such\r\n",
                                "\x7f"
                                "ELF\r\n",
                                "#!/bin/sh", "#!relative\n"}) {
    ASSERT_TRUE(write_file(folder / "x", text).ok());
    EXPECT_EQ(check_first_line(folder / "x", "x").to_string(), "ok") << text;
  }
  EXPECT_EQ(check_first_line(folder / "none", "none").to_string(), "ok");
}

TEST(Process, a_folder_is_no_program) {
  EXPECT_EQ(run({"/tmp"}).status().message(), "/tmp: is a folder, not a program");
  EXPECT_EQ(run({"/tmp"}).status().code(), Code::invalid);
}

TEST(Process, a_program_of_another_system_lacks_its_loader) {
  std::string program = *read_file("/bin/true");
  const std::size_t loader = program.find("/ld-linux");
  if (loader == std::string::npos) GTEST_SKIP() << "/bin/true has no loader";
  program[loader + 1] = 'x';
  EXPECT_EQ(start(program).message(), "./program: the loader that it was built for is not there");
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
