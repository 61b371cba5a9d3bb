#include "observe/doubts.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Doubt> doubts(const std::string& text, std::size_t at_most = 3) {
  TempDirectory box;
  CHECK(write_file(box / "log", text).ok());
  return find_doubts(box / "log", at_most);
}

TEST(Doubts, a_command_that_never_ran_is_found_with_its_line) {
  const auto found =
      doubts("epoch 1\n/var/spool/job4/slurm_script: line 4: trainer: command not found\ndone\n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[0].text, "/var/spool/job4/slurm_script: line 4: trainer: command not found");
}

TEST(Doubts, each_kind_of_sign_is_known) {
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
    EXPECT_THAT(doubts(std::string(line) + "\n"), SizeIs(1)) << line;
  }
}

TEST(Doubts, an_exception_of_python_is_told_by_its_last_line) {
  const auto found = doubts(
      "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n    import torch\n"
      "ModuleNotFoundError: No module named 'torch'\n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 4u);
  EXPECT_EQ(found[0].text, "ModuleNotFoundError: No module named 'torch'");
}

TEST(Doubts, what_a_healthy_training_prints_is_none) {
  EXPECT_THAT(doubts("epoch 1: loss 2.3, error 0.9\nValueError: told, and caught\nsrun: job 7 queued\n"
                     "1: file not found in the index, skipped\nlr: 0.1: not found to be better\n"),
              IsEmpty());
  EXPECT_THAT(find_doubts("/nowhere/log"), IsEmpty());
}

TEST(Doubts, only_the_first_ones_are_told) {
  EXPECT_THAT(doubts("a: line 1: b: command not found\na: line 2: c: command not found\n", 1), SizeIs(1));
}

TEST(Doubts, an_attempt_is_searched_from_its_script_to_its_ranks) {
  TempDirectory box;
  const record::Attempt attempt(box.path(), 1);
  ASSERT_TRUE(write_file(attempt.batch_log(), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt.log(0), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt.log(1), "x\n/bin/sh: 1: trainer: not found\n").ok());
  const auto found = doubts_of(attempt);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].file, attempt.log(1));
  EXPECT_EQ(found[0].line, 2u);
}

}  // namespace
}  // namespace stoker::observe
