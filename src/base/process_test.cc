#include "base/process.h"

#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::chrono_literals;

Result<Captured> run(std::vector<std::string> argv) {
  return run_program({.argv = std::move(argv)}, Deadline::after(20s));
}

TEST(Process, returns_output_and_exit_code) {
  const auto captured = run({"sh", "-c", "echo out; echo err >&2; exit 7"});
  ASSERT_TRUE(captured.ok());
  EXPECT_EQ(captured->out, "out\n");
  EXPECT_EQ(captured->err, "err\n");
  EXPECT_EQ(to_text(captured->exit), "exit code 7");
}

TEST(Process, distinguishes_a_signal_from_an_exit_code) {
  const auto captured = run({"sh", "-c", "kill -9 $$"});
  EXPECT_EQ(to_text(captured->exit), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(captured->exit.shell_code(), 137);
}

TEST(Process, a_program_that_cannot_be_executed_is_an_error_not_a_child) {
  EXPECT_EQ(run({"no-such-program-here"}).status().message(),
            "no-such-program-here: command not found in PATH");
  EXPECT_EQ(run({"/no/such"}).status().message(), "/no/such: no such file or directory");
  EXPECT_EQ(run({"/etc/passwd"}).status().message(), "/etc/passwd: permission denied");
  EXPECT_EQ(
      run_program({.argv = {"true"}, .directory = "/no/folder"}, Deadline::after(5s)).status().message(),
      "/no/folder: no such file or directory");
}

// Writes a program into a new folder and starts it there as ./program.
Status start(std::string_view text) {
  TempDirectory folder;
  EXPECT_TRUE(write_file(folder / "program", text).ok());
  EXPECT_EQ(::chmod((folder / "program").c_str(), 0755), 0);
  return run_program({.argv = {"./program"}, .directory = folder.path()}, Deadline::after(20s)).status();
}

TEST(Process, reports_a_missing_interpreter) {
  const Status missing = start("#! /nonexistent/python -u\n");
  EXPECT_EQ(missing.message(),
            "./program: its first line names the interpreter '/nonexistent/python', which does not exist");
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_EQ(start("#!/nonexistent/python").message(), missing.message());
  EXPECT_EQ(start("#!/bin/sh\nexit 3\n").to_string(), "ok");
}

TEST(Process, reports_windows_line_endings_with_a_cure) {
  const Status windows = start("#!/bin/sh\r\necho one\r\n");
  EXPECT_EQ(windows.message(),
            "./program: its first line names the interpreter '/bin/sh\\r', which does not exist: the file "
            "has Windows line "
            "ends");
  EXPECT_EQ(windows.code(), Code::not_found);
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "a b", "#!/usr/bin/env python3\r\n").ok());
  const Status first_line = check_shebang(folder / "a b", "./a b");
  EXPECT_EQ(first_line.message(),
            "./a b: its first line names the interpreter '/usr/bin/env python3\\r', which does not exist: "
            "the file has "
            "Windows line ends");
  EXPECT_EQ(first_line.cure(), format("sed -i 's/\\r$//' '{}/a b'", folder.path()));
}

TEST(Process, checks_the_first_line_only_of_scripts) {
  TempDirectory folder;
  for (std::string_view text : {"", "#!", "#!\n", "# !/no/such\r\n",
                                "\x7f"
                                "ELF\r\n",
                                "#!/bin/sh", "#!relative\n"}) {
    ASSERT_TRUE(write_file(folder / "x", text).ok());
    EXPECT_EQ(check_shebang(folder / "x", "x").to_string(), "ok") << text;
  }
  EXPECT_EQ(check_shebang(folder / "none", "none").to_string(), "ok");
}

TEST(Process, a_folder_is_not_a_program) {
  EXPECT_EQ(run({"/tmp"}).status().message(), "/tmp: expected a program, got a folder");
  EXPECT_EQ(run({"/tmp"}).status().code(), Code::invalid);
}

TEST(Process, reports_a_missing_dynamic_loader) {
  std::string program = *read_file("/bin/true");
  const std::size_t loader = program.find("/ld-linux");
  if (loader == std::string::npos) GTEST_SKIP() << "/bin/true has no loader";
  program[loader + 1] = 'x';
  EXPECT_EQ(start(program).message(), "./program: its dynamic loader does not exist");
}

TEST(Process, is_killed_at_the_deadline_and_named_in_the_error) {
  const auto captured = run_program({.argv = {"sleep", "60"}}, Deadline::after(50ms));
  EXPECT_EQ(captured.status().code(), Code::timeout);
  EXPECT_EQ(captured.status().message(), "sleep: still running at the deadline");
}

TEST(Process, a_grandchild_that_keeps_the_pipe_open_does_not_block) {
  const auto captured = run({"sh", "-c", "sleep 5 & echo done"});
  ASSERT_TRUE(captured.ok());
  EXPECT_EQ(captured->out, "done\n");
}

TEST(Process, uses_the_given_environment_and_folder) {
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

TEST(Process, wait_returns_the_same_result_again) {
  auto child = Child::spawn({.argv = {"sh", "-c", "exit 3"}});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->wait(Deadline::after(20s))->code, 3);
  EXPECT_EQ(child->wait(Deadline::after(20s))->code, 3);
  EXPECT_TRUE(child->signal(SIGTERM).ok());
}

TEST(Process, signals_have_the_names_of_glibc) {
  for (int signal = 1; signal <= 64; ++signal) {
    const char* name = ::sigabbrev_np(signal);
    EXPECT_EQ(signal_name(signal),
              name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name));
  }
}

TEST(Process, descriptors_from_the_first_are_closed_on_exec) {
  const int below = ::open("/dev/null", O_RDONLY);
  const int first = ::open("/dev/null", O_RDONLY), above = ::open("/dev/null", O_RDONLY);
  set_close_on_exec_from(first);
  EXPECT_EQ(::fcntl(below, F_GETFD), 0);
  EXPECT_EQ(::fcntl(first, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(above, F_GETFD), FD_CLOEXEC);
  for (int fd : {below, first, above}) ::close(fd);
}

}  // namespace
}  // namespace stoker
