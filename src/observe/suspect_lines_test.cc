#include "observe/suspect_lines.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<SuspectLine> suspects(const std::string& text, std::size_t at_most = 3) {
  TempDirectory box;
  STOKER_CHECK(write_file(box / "log", text).ok());
  return find_suspect_lines(box / "log", at_most);
}

TEST(SuspectLines, finds_a_command_that_was_not_found) {
  const auto found =
      suspects("epoch 1\n/var/spool/job4/slurm_script: line 4: trainer: command not found\ndone\n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[0].text, "/var/spool/job4/slurm_script: line 4: trainer: command not found");
}

TEST(SuspectLines, recognizes_each_kind_of_sign) {
  for (const char* line :
       {"job.sh: line 3: ./train.sh: Permission denied", "/bin/sh: 1: trainer: not found",
        "/bin/sh: 1: trainer: not foundepoch 1",
        "job.sh: line 9:  4711 Killed                  python train.py",
        "srun: error: n1: task 0: Exited with exit code 1", "srun: error: n2: tasks 0-3: Killed",
        "slurmstepd-n1: error: execve(): trainer: No such file or directory",
        "slurmstepd: error: couldn't chdir to `/gone': No such file or directory: going to /tmp instead",
        "Lmod has detected the following error:  The following module(s) are unknown: \"cuda/99\"",
        "tar: data.tar: Cannot open: No such file or directory",
        "cp: cannot stat 'data': No such file or directory",
        "OSError: [Errno 28] x: No space left on device"}) {
    EXPECT_THAT(suspects(std::string(line) + "\n"), SizeIs(1)) << line;
  }
}

TEST(SuspectLines, recognizes_a_python_exception_by_its_last_line) {
  const auto found = suspects(
      "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n    import torch\n"
      "ModuleNotFoundError: No module named 'torch'\n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 4u);
  EXPECT_EQ(found[0].text, "ModuleNotFoundError: No module named 'torch'");
}

TEST(SuspectLines, ignores_exceptions_that_were_handled) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n";
  EXPECT_THAT(suspects("--- Logging error ---\n" + traceback +
                       "TypeError: not all arguments converted during string formatting\nCall stack:\n"
                       "  File \"train.py\", line 5, in <module>\nMessage: 'x'\nArguments: (5,)\nepoch 2\n"),
              IsEmpty());
  EXPECT_THAT(suspects("Exception ignored in: <function Loader.__del__ at 0x7f>\n" + traceback +
                       "AssertionError: can only test a child process\n"),
              IsEmpty());
  EXPECT_THAT(suspects("WARNING:root:skipped a.jpg\n" + traceback + "OSError: truncated\nepoch 2\n"),
              IsEmpty());
  // The last output of the program.
  EXPECT_THAT(suspects("ERROR:root:training failed\n" + traceback + "OSError: truncated\n"), SizeIs(1));
  EXPECT_THAT(suspects("Exception ignored in: <function f>\nepoch 2\n" + traceback + "KeyError: 'x'\n"),
              SizeIs(1));
}

TEST(SuspectLines, ignores_the_output_of_a_healthy_training) {
  EXPECT_THAT(suspects("epoch 1: loss 2.3, error 0.9\nValueError: raised, and caught\nsrun: job 7 queued\n"
                       "1: file not found in the index, skipped\nlr: 0.1: not found to be better\n"),
              IsEmpty());
  EXPECT_THAT(find_suspect_lines("/nowhere/log"), IsEmpty());
}

TEST(SuspectLines, reports_only_the_first_ones) {
  EXPECT_THAT(suspects("a: line 1: b: command not found\na: line 2: c: command not found\n", 1), SizeIs(1));
}

TEST(SuspectLines, searches_the_logs_of_script_and_ranks) {
  TempDirectory box;
  const record::Attempt attempt(box.path(), 1);
  ASSERT_TRUE(write_file(attempt.batch_log(), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt.log(0), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt.log(1), "x\n/bin/sh: 1: trainer: not found\n").ok());
  const auto found = attempt_suspect_lines(attempt);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].file, attempt.log(1));
  EXPECT_EQ(found[0].line, 2u);
}

}  // namespace
}  // namespace stoker::observe
