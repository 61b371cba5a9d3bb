#include "diagnose/finality.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

const std::string kBroken = kTraceback + "pickle.UnpicklingError: pickle data was truncated\n";

TEST(Finality, words_after_an_error_show_what_became_of_the_process) {
  for (const char* line :
       {"could not restore b.pkl - trying the previous one", "WARN: mirror unreachable, using local copy",
        "using the numpy backend instead", "falling back to gloo", "selected batch size 32",
        "training from scratch", "using defaults"}) {
    if (std::string_view(line).starts_with("WARN")) continue;
    EXPECT_EQ(after_error_of(line), AfterError::fallback) << line;
  }
  EXPECT_EQ(after_error_of("retrying in 5 s"), AfterError::way_around);
  for (const char* line : {"restored step 100", "wrote table of 2 rows", "training resumed at epoch 3"})
    EXPECT_EQ(after_error_of(line), AfterError::work) << line;
  for (const char* line : {"Training finished OK", "finished 10/10 epochs", "All tests passed"})
    EXPECT_EQ(after_error_of(line), AfterError::success) << line;
  for (const char* line : {"exit code: 3", "job.sh: line 4: 99 Aborted"})
    EXPECT_EQ(after_error_of(line), AfterError::failed_end) << line;
  for (const char* line : {"    return f(x)", "ValueError: no data", "srun: error: n1: task 0", "^^^^",
                           "could not save the model", "lr 0.1", ""})
    EXPECT_EQ(after_error_of(line), std::nullopt) << line;
}

TEST(Finality, an_error_after_which_the_program_found_a_way_is_only_likely) {
  EXPECT_EQ(explain_log(kBroken).certainty, Certainty::known);
  for (const char* way : {"cannot use b.ckpt, trying the one before\nrestored epoch 3\n",
                          "reading the backup copy instead\n", "resumed from a.ckpt\n", "wrote scores.csv\n"})
    EXPECT_EQ(explain_log(kBroken + way + "lr 0.1\n").certainty, Certainty::likely) << way;
  // Its own lines, lines of launchers, and a failed end follow a final error.
  for (const char* end :
       {"srun: error: n1: task 0: Exited with exit code 1\n", "train.py ended, exit code 1\n",
        "wandb: You can sync this run later\n", "could not save the state\n"})
    EXPECT_EQ(explain_log(kBroken + end).certainty, Certainty::known) << end;
  // The success of a part of the script, before the script's failed end.
  EXPECT_EQ(explain_log(kBroken + "Download complete\njob failed: exit code 1\n").certainty,
            Certainty::known);
  // Other ranks continue.
  EXPECT_EQ(explain_log("[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: 'lr'\n[rank0]: "
                        "restored step 3\n")
                .certainty,
            Certainty::known);
}

TEST(Finality, words_above_a_traceback_do_not_weaken_it) {
  EXPECT_EQ(explain_log("resuming from a.ckpt\n" + kBroken).certainty, Certainty::known);
}

TEST(Finality, of_two_independent_failures_neither_is_sure) {
  const std::string first = "cp: cannot create regular file 'x': Read-only file system\n";
  EXPECT_EQ(explain_log(first).certainty, Certainty::known);
  EXPECT_EQ(explain_log(first + steps(5) + kTraceback + "RuntimeError: the graph has a cycle\n").certainty,
            Certainty::likely);
  // The line above an exception reports its reason.
  EXPECT_EQ(explain_log(first + kTraceback + "RuntimeError: copying failed\n").certainty, Certainty::known);
}

TEST(Finality, a_line_of_the_shell_yields_to_a_later_failure) {
  const std::string missing = "job.sh: line 3: nvidia-smi: command not found\n";
  const std::string optional = "cat: notes.txt: No such file or directory\n";
  for (const std::string& line : {missing, optional, missing + optional}) {
    EXPECT_EQ(explain_log(line + kTraceback + "KeyError: 'lr'\n").rule, "python-exception") << line;
    EXPECT_EQ(
        explain_log(line + "building\n" + kTraceback + "torch.OutOfMemoryError: CUDA out of memory.\n").rule,
        "gpu-out-of-memory")
        << line;
  }
  // It lacks what the shell's command was to prepare.
  EXPECT_EQ(explain_log("job.sh: line 3: module: command not found\n" + kTraceback +
                        "ModuleNotFoundError: No module named 'scipy'\n")
                .rule,
            "module-command-missing");
  EXPECT_EQ(explain_log("cp: cannot stat '/data/splits.json': No such file or directory\n" + kTraceback +
                        "FileNotFoundError: [Errno 2] No such file or directory: 'splits.json'\n")
                .rule,
            "tool-file-missing");
  // A program that was not built.
  EXPECT_EQ(
      explain_log("fft.c:3:7: error: 'n' undeclared\njob.sh: line 2: ./fft: No such file or directory\n")
          .rule,
      "compile-error");
  EXPECT_EQ(
      explain_log("fft.c:(.text+0xa): undefined reference to `cut'\njob.sh: line 2: ./fft: No such file "
                  "or directory\n")
          .rule,
      "link-undefined");
}

TEST(Finality, a_script_that_worked_in_spite_of_its_shell_ended_well) {
  const std::string missing = "job.sh: line 2: module: command not found\n";
  for (const std::string& end :
       {std::string("wrote 3 rows\nJob completed at Mon Nov 2 10:00:01 UTC 2026 with exit code 0\n"),
        steps(3) + "job.sh: line 9: all steps completed\n", std::string("saved plot.png\nDone.\n"),
        std::string(
            "rm old.o\nmake: [Makefile:2: clean] Error 1 (ignored)\n30 checks, 0 failures\nBUILD OK\n")}) {
    const Diagnosis none = explain_log(missing + end);
    EXPECT_EQ(none.certainty, Certainty::none) << end;
    EXPECT_EQ(none.notes.size(), 1u) << end;
  }
  // A failure after the success, below a summary that counts what was skipped.
  for (const char* summary :
       {"=== 3 passed, 1 skipped in 2.11s ===\n", "Done. 3 files skipped\n", "exit code 0\n"})
    EXPECT_EQ(explain_log(missing + summary + kTraceback + "KeyError: 'lr'\n").rule, "python-exception");
  // A build that failed, in a script without `set -e`.
  EXPECT_EQ(explain_log("fft.c:3:7: error: 'n' undeclared\nexit code 0\n").rule, "compile-error");
  EXPECT_EQ(explain_log("resuming from a.ckpt\n" + kBroken + "Done.\n").rule, "checkpoint-unreadable");
  // The program itself was not found, or nothing shows that it worked.
  EXPECT_EQ(explain_log("job.sh: line 2: trainer: command not found\ncopied logs\nDone\n").rule,
            "command-not-found");
  EXPECT_EQ(explain_log(missing + "Done\n").rule, "module-command-missing");
  EXPECT_EQ(explain_log(missing + "saved plot.png\nexit code 2\n").rule, "module-command-missing");
}

TEST(Finality, an_attempt_of_torchrun_that_finished_excuses_the_one_before) {
  const std::string lost =
      "[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: 'lr'\nE1121 10:03:11.250000 7 "
      "torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 13) of "
      "binary: /v/bin/python\n";
  EXPECT_EQ(explain_log(lost + "attempt 2\nTraining finished OK\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(lost + lost + "worker ready\nAll 3 folds trained\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(lost + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\nJob "
                               "finished\n")
                .rule,
            "python-exception");
  const std::string terminated =
      "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15\n";
  EXPECT_EQ(explain_log(lost + "attempt 2\n" + terminated).rule, "torchrun-terminated");
  EXPECT_EQ(
      explain_log("[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: 'lr'\n" + terminated).rule,
      "python-exception");
}

}  // namespace
}  // namespace stoker::diagnose
