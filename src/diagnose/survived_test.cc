#include "diagnose/survived.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::IsEmpty;

const std::string kMissing = kTraceback + "FileNotFoundError: [Errno 2] No such file or directory: '/a.pt'\n";
const std::string kCaught = "2025-11-21 10:03:11,159 ERROR train: cannot load /a.pt\n" + kMissing;
const std::string kFinished = "2025-11-21 10:09:11,159 INFO train: Training complete\n";

TEST(Survived, a_log_that_ends_with_success_has_no_cause) {
  const Diagnosis none = explain_log(kCaught + steps(3) + kFinished);
  EXPECT_EQ(none.certainty, Certainty::none);
  EXPECT_EQ(none.rule, "");
  EXPECT_THAT(none.evidence, IsEmpty());
  ASSERT_EQ(none.notes.size(), 1u);
  EXPECT_EQ(none.notes[0], "the program survived an error: /a.pt does not exist on that node (train.log:4)");
  EXPECT_EQ(explain_log(steps(3) + "All shards processed\n").certainty, Certainty::none);
  // A report of an upload after the end.
  EXPECT_EQ(explain_log(steps(3) + kFinished + "WARNING wandb: no upload\n" + kTraceback +
                        "BrokenPipeError: [Errno 32] Broken pipe\n")
                .certainty,
            Certainty::none);
  EXPECT_EQ(explain_log("INFO: no module: No module named 'apex', falling back to native\n" + kFinished)
                .notes.size(),
            0u);
}

TEST(Survived, a_failure_beside_a_success_is_a_cause) {
  for (const std::string& end :
       {kMissing, std::string("job.sh: line 9:  4711 Killed                  python train.py\n"),
        std::string(
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T10:03:11 DUE TO TIME LIMIT ***\n")})
    EXPECT_NE(explain_log(steps(3) + kFinished + end).rule, "") << end;
  // One rank of several ends, a different one fails.
  EXPECT_EQ(explain_log(kMissing + kFinished).rule, "data-file-missing");
  EXPECT_EQ(
      explain_log(kMissing + kFinished + "srun: error: n1: task 0: Exited with exit code 1\n").certainty,
      Certainty::known);
  EXPECT_EQ(explain_log(kFinished + "train.py: exit code: 3\n").certainty, Certainty::unknown);
  // A script prints its end after a program that logged its failure.
  EXPECT_EQ(explain_log(kCaught + "Job finished at Fri Nov 21 10:09\n").rule, "data-file-missing");
  EXPECT_EQ(explain_log(kCaught + steps(3) + "Job finished at Fri Nov 21 10:09\n").certainty,
            Certainty::none);
  EXPECT_EQ(explain_log(kCaught + "Done.\n").certainty, Certainty::likely);
  // The state of a job is known better by its records.
  TestLogs job;
  job.add("train.log", kCaught + steps(3) + kFinished).facts.started_as = StartKind::script;
  EXPECT_EQ(job.explain().rule, "data-file-missing");
  TestLogs ranks;
  EXPECT_EQ(ranks.add("rank-0.log", steps(3) + kFinished, 0).add("rank-1.log", kMissing, 1).explain().rank,
            1);
}

TEST(Survived, harmless_lines_are_no_cause) {
  const std::string probe =
      "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': libtpu.so: cannot open shared object "
      "file: No such file or directory\n";
  EXPECT_EQ(explain_log(probe + kTraceback + "KeyError: 'lr'\n").rule, "python-exception");
  EXPECT_EQ(explain_log(probe + steps(20)).rule, "");
  EXPECT_EQ(explain_log("WARNING: No module named 'apex', falling back to native AMP\n" + kTraceback +
                        "KeyError: 'lr'\n")
                .rule,
            "python-exception");
  // Without any other reason, at the end of the log.
  EXPECT_EQ(explain_log(steps(3) + probe).certainty, Certainty::likely);
}

TEST(Survived, a_reported_error_yields_to_a_later_end_after_progress) {
  EXPECT_EQ(explain_log(kCaught + steps(3) + kTraceback + "KeyError: 'lr'\n").rule, "python-exception");
  EXPECT_EQ(
      explain_log(kCaught + steps(3) + "job.sh: line 9:  4711 Killed                  python train.py\n")
          .rule,
      "batch-killed");
  EXPECT_EQ(explain_log(kCaught + steps(3)).certainty, Certainty::likely);
  // It is the cause if the training did not continue.
  EXPECT_EQ(explain_log(kCaught + kTraceback + "KeyError: 'lr'\n").rule, "data-file-missing");
  EXPECT_EQ(explain_log(kCaught).certainty, Certainty::known);
  // The lines of other ranks do not count.
  EXPECT_EQ(explain_log("[rank1]: ERROR train: x\n[rank1]: Traceback (most recent call last):\n[rank1]: "
                        "KeyError: 'lr'\n" +
                        steps(5, "[rank0]: "))
                .certainty,
            Certainty::known);
  EXPECT_EQ(explain_log("ERROR train: x\n" + kTraceback + "KeyError: 'lr'\n" + steps(5, "(train pid=4711) "))
                .certainty,
            Certainty::known);
}

TEST(Survived, an_error_that_a_retry_survived_is_a_note) {
  const std::string broken = kTraceback + "OSError: [Errno 5] Input/output error\n";
  for (const std::string& end : {std::string("All 5 folds trained. AUC 0.9\n"), std::string("Finished\n"),
                                 std::string("wrote scores.csv\n"), std::string("job.sh: exit code 0\n")}) {
    const Diagnosis none = explain_log(broken + "retrying in 5 s (attempt 1 of 3)\n" + steps(2) + end);
    EXPECT_EQ(none.certainty, Certainty::none) << end;
    EXPECT_EQ(none.notes.size(), 1u) << end;
  }
  // The last attempt.
  EXPECT_EQ(explain_log(kMissing + "retrying (2/3)\n" + kMissing + "giving up\nDone\n").rule,
            "data-file-missing");
  const std::string lost =
      "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
      "(raylet) Task f failed. There are 2 retries remaining, so the task will be retried.\n";
  EXPECT_EQ(explain_log(lost + "All 5 folds trained\n").certainty, Certainty::none);
}

TEST(Survived, the_end_of_a_script_does_not_hide_a_failure) {
  for (const char* end : {"Done\n", "All experiments finished\n", "PASSED\n", "wrote report.txt\n"}) {
    EXPECT_EQ(explain_log(kMissing + end).rule, "data-file-missing") << end;
    EXPECT_EQ(explain_log("ERROR: the data set is empty\n" + std::string(end)).rule, "own-error") << end;
  }
}

TEST(Survived, a_result_is_a_success_only_as_the_last_line_of_its_kind) {
  EXPECT_EQ(explain_log(steps(3) + "saved model to out/model.npz\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log("saved model to a.npz\n" + steps(3) + "saved model to a.npz\n").certainty,
            Certainty::unknown);
  EXPECT_EQ(explain_log("saved model to a.npz\n" + steps(3)).certainty, Certainty::unknown);
}

constexpr char kLostRank[] =
    "E1121 10:03:11.250000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
    "local_rank: 1 (pid: 13) of binary: /v/bin/python\n";
constexpr char kGaveUp[] = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n";

TEST(Survived, only_the_last_attempt_of_torchrun_counts) {
  const std::string first =
      "[rank1]: " + kTraceback.substr(0, 35) + "[rank1]: RuntimeError: first\n" + kLostRank;
  const std::string second = "[rank0]: Traceback (most recent call last):\n[rank0]: RuntimeError: second\n";
  EXPECT_EQ(explain_log(first + steps(3, "[rank0] ") + kFinished).certainty, Certainty::none);
  const Diagnosis later = explain_log(first + steps(3, "[rank0] ") + second + kLostRank + kGaveUp);
  EXPECT_EQ(later.cause, "the program raised RuntimeError: second");
  EXPECT_EQ(later.rank, 0);
  // Ranks of other nodes print before torchrun gives up.
  EXPECT_EQ(explain_log(first + steps(3, "[rank8] ") + kGaveUp).rank, 1);
  EXPECT_EQ(explain_log(steps(3) + first + kGaveUp + kFinished).rank, 1);
}

TEST(Survived, an_error_that_the_program_handled_yields_to_its_own_words_at_the_end) {
  const std::string skipped =
      "WARNING reader: shard 4 is damaged, skipping it\n" + kTraceback + "ValueError: bad magic number\n";
  const std::string cached = "ERROR:feats:cache is not writable, proceeding without it\n" + kTraceback +
                             "OSError: [Errno 30] Read-only file system: '/cache'\n";
  for (const std::string& error : {skipped, cached, skipped + skipped}) {
    for (const char* end :
         {"INFO root: finished 400 steps, mean reward 7.1\nDEBUG pool: closed\n",
          "Done. 1 shard left out. Best F1: 0.81\n", "Run ended after 3 epochs, test accuracy 0.91\n"}) {
      const Diagnosis none = explain_log("epoch 0\n" + error + "epoch 1\n" + end);
      EXPECT_EQ(none.certainty, Certainty::none) << error << end;
      EXPECT_EQ(none.notes.size(), 1u);
    }
    // The same errors without such an end, or with a failure behind it.
    EXPECT_NE(explain_log("epoch 0\n" + error + "epoch 1\n").certainty, Certainty::none);
    EXPECT_EQ(explain_log("epoch 0\n" + error + "INFO root: finished 400 steps\n" + kMissing).rule,
              "data-file-missing");
    EXPECT_NE(explain_log("epoch 0\n" + error + "INFO root: finished 3/10 epochs\n").certainty,
              Certainty::none);
    EXPECT_NE(explain_log(error + "ERROR root: giving up, run failed\n").certainty, Certainty::none);
  }
}

TEST(Survived, an_error_with_a_way_around_it_and_an_end_is_survived) {
  const std::string printed =
      "probe 512: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB\n";
  const std::string no_fit = "batch 4096 does not fit: OOM when allocating tensor with shape[4096,9]\n";
  const std::string config = "ERROR [Errno 2] No such file or directory: 'a.cfg'\nINFO using defaults\n";
  for (const std::string& error :
       {printed + steps(2), no_fit + "selected batch size 32\n", config,
        kMissing + "no checkpoint, training from scratch\nGPU: none\n",
        std::string(
            "run.sh: line 2: 77 Killed                  python3 a.py\nattempt died, trying smaller\n"),
        std::string("ERROR restore failed: BadZipFile: File is not a zip file\nWARNING initializing from "
                    "scratch\n")}) {
    for (const char* end :
         {"tuning complete\n", "Finished successfully\n", "All done, model in out/m.bin\n",
          "wrote flow.npz\n", "INFO 3 configs migrated\n", "best trial 4 saved to best.json\n",
          "eval finished; results in r.json\n", "model promoted to staging\n",
          "Training finished. best=0.167\n", "PASS: 12/12 checks, 0 failed\n"})
      EXPECT_EQ(explain_log("begin\n" + error + end).certainty, Certainty::none) << error << end;
    EXPECT_NE(explain_log("begin\n" + error).certainty, Certainty::none) << error;
  }
  // Without a way around.
  for (const char* end : {"tuning complete\n", "wrote flow.npz\n", "INFO 3 configs migrated\n"})
    EXPECT_NE(explain_log(kMissing + "lr 0.1\n" + end).certainty, Certainty::none) << end;
  EXPECT_NE(explain_log(kMissing + "skipping plots\nwrote a.npz\n" + kMissing).certainty, Certainty::none);
}

TEST(Survived, trials_of_a_search_may_fail) {
  const std::string trials = "trial 1: lr=0.1 failed: loss is nan\ntrial 2: lr=0.01 ok 0.91\n";
  EXPECT_EQ(explain_log(trials + "best config: lr=0.01 (acc 0.91), written to best.yaml\n").certainty,
            Certainty::none);
  EXPECT_NE(explain_log(trials + "trial 3: lr=1 failed: loss is nan\n").certainty, Certainty::none);
}

TEST(Survived, a_tracker_that_fails_beside_the_program_does_not_change_its_end) {
  EXPECT_EQ(
      explain_log(steps(3) + "ERROR [tracker] upload of metrics timed out\nTraining finished.\n").certainty,
      Certainty::none);
  EXPECT_EQ(explain_log(steps(3) + "ERROR solver gave no result\nTraining finished.\n").certainty,
            Certainty::likely);
}

TEST(Survived, errors_in_a_text_that_the_program_prints_are_no_failure) {
  const std::string text =
      "sample: " + kTraceback + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n";
  const std::string quote = "| user: No space left on device\n";
  const std::string body = "step 10 ppl 30\n" + text + quote + "step 20 ppl 20\n" + text + quote;
  EXPECT_EQ(explain_log(body + "Saved model to out/lm.pt\nAll done in 3 h\n").certainty, Certainty::none);
  // A script that starts a program again and again: each one begins at its first step.
  EXPECT_EQ(explain_log("step 0\n" + kMissing + "step 0\n" + kMissing + "All done\n").rule,
            "data-file-missing");
  EXPECT_EQ(explain_log("step 20\n" + kMissing + "step 10\n" + kMissing + "All done\n").rule,
            "data-file-missing");
  // The training of a different rank continues.
  EXPECT_EQ(explain_log("[rank1]: step 1\n[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: "
                        "'lr'\n[rank0]: step 2\nAll done\n")
                .rule,
            "python-exception");
}

TEST(Survived, the_end_of_a_helper_is_no_failure_of_the_training) {
  const std::string result = "training finished, best val_acc 0.82, checkpoint at best.pt\n";
  const auto killed = [](const std::string& command) {
    return "run.sh: line 4:  991 Killed                  " + command + "\n";
  };
  EXPECT_EQ(explain_log(steps(2) + killed("nvidia-smi dmon -o T") + result).certainty, Certainty::none);
  EXPECT_EQ(explain_log(steps(2) + killed("rsync -a out/ backup/") + result).certainty, Certainty::none);
  EXPECT_EQ(
      explain_log(steps(2) + result + "run.sh: line 9:  77 Terminated              python gpu_monitor.py\n")
          .certainty,
      Certainty::none);
  EXPECT_EQ(explain_log(steps(2) + killed("python train.py") + result).rule, "batch-killed");
  EXPECT_EQ(explain_log(steps(2) + killed("tar xf data.tar") + "job done\n").rule, "batch-killed");
  EXPECT_EQ(explain_log(steps(2) + result + killed("python train.py")).rule, "batch-killed");
}

TEST(Survived, a_line_that_reports_its_own_retry_is_a_note) {
  const std::string fork = "prep.sh: fork: retry: Resource temporarily unavailable\n";
  EXPECT_EQ(explain_log(fork + fork + "all tasks done\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(fork + "prep.sh: fork: Resource temporarily unavailable\n").rule,
            "too-many-processes");
  EXPECT_EQ(explain_log(fork).rule, "too-many-processes");
}

TEST(Survived, the_success_of_one_rank_does_not_excuse_another) {
  const std::string caught =
      "[rank1]: ERROR: no batch\n[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: 'lr'\n";
  EXPECT_EQ(explain_log(caught + "[rank0]: INFO root: Training complete\n").rule, "python-exception");
  EXPECT_EQ(explain_log(caught + "[rank1]: INFO root: Training complete\n").certainty, Certainty::none);
}

TEST(Survived, a_way_around_an_error_and_a_result_end_well) {
  const std::string server =
      "WARNING: Retrying after connection broken by 'HTTPConnection(host='127.0.0.1', port=8080): [Errno "
      "111] "
      "Connection refused'\n";
  EXPECT_EQ(explain_log(server + server + "downloaded 3.2 MB\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(server + server + "connecting to the next\n").certainty, Certainty::likely);
  const std::string hub =
      "ERROR:root:no tokenizer: We couldn't connect to 'https://huggingface.co' to load the files\n";
  EXPECT_EQ(
      explain_log(hub + "using a character tokenizer instead\nvocabulary written to vocab.tsv\n").certainty,
      Certainty::none);
  EXPECT_NE(explain_log(hub + "vocabulary written to vocab.tsv\n").rule, "");
  const std::string bad =
      "2025-11-21 10:03:11,159 ERROR row 7 is broken, skipped\n" + kTraceback + "ValueError: no number\n";
  EXPECT_EQ(explain_log(bad + bad + "kept 10 rows\nwrote rows.jsonl\n").certainty, Certainty::none);
  EXPECT_NE(explain_log(bad + bad + "wrote rows.jsonl\n" + kTraceback + "KeyError: 'a'\n").rule, "");
  // A pool that is started again, and one that is not.
  const std::string pool =
      kTraceback + "concurrent.futures.process.BrokenProcessPool: A process was terminated abruptly\n";
  EXPECT_EQ(explain_log(pool + "the pool died, resubmitting the missing tiles\nDone in 3 s\n").certainty,
            Certainty::none);
  EXPECT_NE(explain_log(pool + "Done in 3 s\n").rule, "");
}

TEST(Survived, a_traceback_in_a_warning_of_python_is_no_failure) {
  const std::string warning = "/v/lib/python3.11/site-packages/search.py:9: FitWarning: \n2 fits failed:\n" +
                              kTraceback +
                              "ValueError: no such solver\n\n  warnings.warn(text, FitWarning)\n";
  EXPECT_EQ(explain_log(warning + "best score 0.7\n").certainty, Certainty::none);
  EXPECT_NE(explain_log(warning + kTraceback + "KeyError: 'a'\n").rule, "");
}

TEST(Survived, a_script_that_stresses_its_success_has_handled_missing_files) {
  const std::string script =
      "cp: cannot stat '/nfs/mesh.bin': No such file or directory\nno mesh there, making one\ncells 100\n"
      "block 1 of 2\nblock 2 of 2\n";
  EXPECT_EQ(explain_log(script + "JOB COMPLETED SUCCESSFULLY\n").certainty, Certainty::none);
  EXPECT_EQ(explain_log(script + "== finished: 0 errors, 2 warnings ==\n").certainty, Certainty::none);
  EXPECT_NE(explain_log(script + "== finished: 3 errors, 2 warnings ==\n").certainty, Certainty::none);
  EXPECT_NE(explain_log(script).rule, "");
  // Nothing but the words of the script.
  EXPECT_NE(
      explain_log("cp: cannot stat 'mesh.bin': No such file or directory\nJob completed successfully\n").rule,
      "");
}

TEST(Survived, a_log_without_an_error_that_ends_with_a_result_ended_well) {
  for (const char* line :
       {"pi = 3.14159265  error 1.2e-13\n", "total energy: -76.02 Ha\n", "checksum 0x1f = 31\n",
        "embeddings saved to emb.npy\n", "speedup 3.9 with 4 processes\n"})
    EXPECT_EQ(explain_log(std::string("reading\n") + line).certainty, Certainty::none) << line;
  for (const char* line :
       {"world size: 4\n", "learning rate 0.1\n", "error: -3\n", "total parameters: 1200\n",
        "checkpoint saved to a.pt\n", "config written to run.yaml\n", "step 7 accuracy 0.5\n"})
    EXPECT_EQ(explain_log(std::string("reading\n") + line).certainty, Certainty::unknown) << line;
}

TEST(Survived, a_success_as_the_last_statement_is_none) {
  const std::string ok = "stage-in complete\n";
  for (const std::string& log :
       {std::string("hash.cpp:2:50: runtime error: signed integer overflow: 1 + 1\nhash job OK\n"),
        std::string("test_a (t.T) ... skipped 'no CUDA-capable device is detected'\nRan 4 tests in 5.5s\n\n"
                    "OK (skipped=1)\n"),
        kMissing + "attempt 0 failed, requeueing\n" + steps(3) + "simulation completed: 8 steps\n",
        "Exception in thread Thread-1 (beat):\n" + kTraceback +
            "ConnectionRefusedError: [Errno 111] Connection refused\nconverged\njob exit code 0\n",
        std::string(
            "(raylet) Task read failed. There are 3 retries remaining, so the task will be retried. Error: "
            "User exception:\n  File \"a.py\", line 6, in read\n    f()\n    ^^^\n    ^^^\n"
            "ConnectionResetError: [Errno 104] Connection reset by peer\nsum 60\ndriver exit: 0\n"),
        "curl: (7) Failed to connect to n1 port 9 after 0 ms: Couldn't connect to server\n"
        "ERROR: download failed (attempt 1), retrying in 2 s\ndownload OK on attempt 2\n" +
            ok,
        std::string("ERROR: pip's dependency resolver does not currently take into account all packages\n"
                    "pipeline ok\n"),
        "ERROR:no service (attempt 0)\n" + kTraceback +
            "ConnectionRefusedError: [Errno 111] Connection refused\n"
            "WARNING:using cached metadata\nprocessed 120 records\nworkflow finished: success\n",
        std::string("report.html written\nOK\n"), std::string(" Normal termination of Gaussian 16.\n")})
    EXPECT_EQ(explain_log(log).certainty, Certainty::none) << log;
  // Parts that others follow, and the end of make.
  for (const char* line : {"loading data done\n", "initialization complete\n", "epoch 3 done\n",
                           "download OK\n", "make: *** [Makefile:3: a.o] Error 1\n"})
    EXPECT_NE(explain_log("reading\n" + std::string(line)).certainty, Certainty::none) << line;
}

TEST(Survived, output_after_the_end_of_a_training_is_part_of_its_success) {
  const std::string stopped = steps(3) +
                              "`Trainer.fit` stopped: `max_epochs=3` reached.\nEpoch 2/2  ━━━━━━━ 25/25 "
                              "0:00:00 train_loss: 1.0\n";
  EXPECT_EQ(explain_log(stopped + "testing\n{'test_acc': 0.331}\n").certainty, Certainty::none);
  // A later failure counts.
  EXPECT_EQ(explain_log(stopped + "testing\n" + kTraceback + "KeyError: 'test'\n").rule, "python-exception");
  EXPECT_EQ(explain_log(stopped + "job.sh: line 9:  4711 Killed                  python train.py\n").rule,
            "batch-killed");
  EXPECT_EQ(explain_log(stopped + kMissing).rule, "data-file-missing");
}

}  // namespace
}  // namespace stoker::diagnose
