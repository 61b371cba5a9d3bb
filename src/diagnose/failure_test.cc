#include "diagnose/failure.h"

#include <set>

#include <gmock/gmock.h>

#include "base/file.h"
#include "diagnose/rule.h"
#include "diagnose/scan.h"
#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Diagnosis explain(const std::string& text) {
  TestLogs logs;
  return logs.add("log", text).explain();
}

std::vector<std::string> places(const Diagnosis& diagnosis) {
  std::vector<std::string> found;
  for (const Evidence& evidence : diagnosis.evidence) found.push_back(evidence.where);
  return found;
}

TEST(Failure, a_reported_reason_outranks_srun_exit_lines) {
  const auto with = [](const std::string& reason) {
    TestLogs logs;
    return logs.add("slurm.log", "srun: error: n2: task 1: Killed\n").record(reason, 0).first(0).explain();
  };
  EXPECT_EQ(with("rank 0 (n1, process 7): the gizmo is jammed").cause, "the gizmo is jammed");
  const Diagnosis known = with(
      "rank 0 (n1, process 7): GLOO_SOCKET_IFNAME=eth7 does not name an interface that is up (there are lo, "
      "eth0; unset it to choose automatically)");
  EXPECT_EQ(known.rule, "interface-not-there");
  EXPECT_EQ(known.certainty, Certainty::known);
  EXPECT_THAT(known.cause.english(), HasSubstr("GLOO_SOCKET_IFNAME names eth7"));
}

TEST(FailureRules, each_is_the_first_to_match_its_examples) {
  for (const FailureRule* rule : failure_rules()) {
    for (const std::string_view line : split(rule->example, '\n')) {
      if (line.empty()) continue;
      LogScanner scanner;
      scanner.scan(std::string(line) + "\n");
      const ScanResult scanned = scanner.finish();
      if (rule->failure_class == FailureClass::noise) {
        EXPECT_THAT(scanned.hits, IsEmpty()) << rule->name << ": " << line;
        continue;
      }
      EXPECT_THAT(scanned.hits, SizeIs(1)) << rule->name << ": " << line;
      if (scanned.hits.empty()) continue;
      EXPECT_EQ(scanned.hits[0].rule->name, rule->name) << line;
    }
  }
}

TEST(FailureRules, each_has_an_origin_and_all_but_noise_a_cause) {
  std::set<std::string_view> names;
  for (const FailureRule* rule : failure_rules()) {
    EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
    EXPECT_FALSE(rule->origin.empty()) << rule->name;
    EXPECT_FALSE(rule->words.empty()) << rule->name;
    EXPECT_EQ(rule->example.empty(), rule->name == "python-exception") << rule->name;
    EXPECT_EQ(rule->cause.empty(), rule->failure_class == FailureClass::noise) << rule->name;
  }
  EXPECT_GE(names.size(), 100u);
}

TEST(FailureRules, healthy_training_output_has_no_hits) {
  const Diagnosis diagnosis = explain(
      "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
      "n1:7:8 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation\n"
      "epoch 1: loss 2.3, error 0.9, 12 not found in the index\nepoch 2: killed it, top-1 71.4 %\n");
  EXPECT_EQ(diagnosis.certainty, Certainty::unknown);
  EXPECT_EQ(diagnosis.rule, "");
}

TEST(Explain, the_rank_that_raised_is_the_cause_and_not_its_peers) {
  TestLogs logs;
  logs.add("rank-0000.log", "RuntimeError: pair.cc:534] Connection closed by peer [10.0.0.2]:44750\n", 0);
  logs.add(
      "rank-0001.log",
      "step 7\nTraceback (most recent call last):\n  File \"/users/ada/train.py\", line 88, in <module>\n"
      "    main()\n  File \"/v/lib/python3.11/site-packages/torch/nn.py\", line 3, in f\nKeyError: 'lr'\n",
      1);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.certainty, Certainty::known);
  EXPECT_EQ(diagnosis.rule, "python-exception");
  EXPECT_EQ(diagnosis.cause, "the program raised KeyError: 'lr' (train.py:88)");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_THAT(places(diagnosis), ElementsAre("rank-0001.log:6"));
  EXPECT_EQ(diagnosis.consequences,
            "rank 0: the connection to a peer broke: the peer ended first (rank-0000.log:1)");
}

TEST(Explain, of_two_failures_the_earlier_by_the_clock_is_the_cause) {
  TestLogs logs;
  logs.add("rank-0000.log", "2025-11-21 10:03:12,000 ERROR: [Errno 28] No space left on device: '/a'\n", 0);
  logs.add("rank-0001.log", "2025-11-21 10:03:11,000 RuntimeError: CUDA error: invalid device ordinal\n", 1);
  EXPECT_EQ(logs.explain().rule, "no-such-gpu");
}

TEST(Explain, the_rank_that_the_records_name_comes_first) {
  TestLogs logs;
  logs.add("rank-0000.log", "OSError: [Errno 28] No space left on device: '/a'\n", 0);
  logs.add("rank-0001.log", "RuntimeError: CUDA error: invalid device ordinal\n", 1).first(1);
  EXPECT_EQ(logs.explain().rule, "no-such-gpu");
  EXPECT_EQ(logs.first(0).explain().rule, "disk-full");
}

TEST(Explain, torchruns_table_names_the_first_rank_of_a_mixed_log) {
  const Diagnosis diagnosis = explain(
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"b.py\", line 2, in f\n"
      "[rank0]: ValueError: zero\n[rank1]: ValueError: one\n"
      "Root Cause (first observed failure):\n[0]:\n  time      : 2025-11-21_10:03:11\n  rank      : 1 "
      "(local_rank: 1)\n");
  EXPECT_EQ(diagnosis.cause, "the program raised ValueError: one (b.py:2)");
  EXPECT_EQ(diagnosis.rank, 1);
}

TEST(Explain, a_wrapper_yields_to_what_it_wraps) {
  EXPECT_EQ(explain("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                    "KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most "
                    "recent call last):\n"
                    "  File \"/users/ada/data.py\", line 12, in __getitem__\nKeyError: 'label'\n\n")
                .cause,
            "the program raised KeyError: 'label' (data.py:12)");
}

TEST(Explain, boxed_tracebacks_are_read) {
  EXPECT_EQ(
      explain("╭───── Traceback (most recent call last) ─────╮\n│ /users/ada/train.py:88 in main │\n"
              "│ ❱ 88 │ │ parse(text) │\n╰─────────────────╯\nException: expected value at line 1 column 1\n")
          .cause,
      "the program raised Exception: expected value at line 1 column 1 (train.py:88)");
}

TEST(Explain, the_exception_below_a_thousand_frames_is_found) {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i)
    text +=
        "  File \"tree.py\", line 4, in depth\n    return 1 + max(depth(k) for k in s.kids)\n     ^^^^^^\n";
  const Diagnosis diagnosis = explain(text + "RecursionError: maximum recursion depth exceeded\n");
  EXPECT_EQ(diagnosis.certainty, Certainty::known);
  EXPECT_EQ(diagnosis.cause,
            "the program raised RecursionError: maximum recursion depth exceeded (tree.py:4)");
}

TEST(Explain, a_failure_that_was_survived_is_not_the_cause_of_a_time_limit) {
  std::string text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n";
  for (int i = 0; i < 100; ++i) text += format("step {}\n", i);
  text += "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO TIME LIMIT ***\n";
  EXPECT_EQ(explain(text).rule, "time-limit");
}

TEST(Explain, a_failure_that_a_rank_survived_is_not_the_cause_of_a_time_limit_from_slurm) {
  std::string text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n";
  TestLogs short_one;
  EXPECT_EQ(short_one.add("rank-0000.log", text, 0).record("state: timeout").explain().rule,
            "python-exception");
  for (int i = 0; i < 100; ++i) text += format("step {}\n", i);
  TestLogs long_one;
  EXPECT_EQ(long_one.add("rank-0000.log", text, 0).record("state: timeout").explain().rule, "state-timeout");
}

TEST(Explain, a_failure_after_which_peers_waited_until_the_time_limit_is_the_cause) {
  std::string text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n";
  for (int i = 0; i < 200; ++i) text += format("[rank{}]: Connection closed by peer [10.0.0.2]:44750\n", i);
  text += "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO TIME LIMIT ***\n";
  EXPECT_EQ(explain(text).rule, "python-exception");
}

TEST(Explain, a_failure_long_before_the_end_of_the_log_is_only_likely) {
  std::string text = "OSError: [Errno 28] No space left on device: '/a'\n";
  EXPECT_EQ(explain(text).certainty, Certainty::known);
  for (int i = 0; i < 600; ++i) text += format("step {}\n", i);
  EXPECT_EQ(explain(text).rule, "disk-full");
  EXPECT_EQ(explain(text).certainty, Certainty::likely);
}

TEST(Explain, failures_that_a_script_survived_are_a_cause_only_if_no_other_exists) {
  const std::string missing = "rm: cannot remove 'models/a': No such file or directory\n";
  std::string steps;
  for (int i = 0; i < 100; ++i) steps += format("step {}\n", i);
  EXPECT_EQ(explain(missing).certainty, Certainty::known);
  EXPECT_EQ(explain(missing + steps).certainty, Certainty::likely);
  EXPECT_EQ(explain(missing + steps + "KeyError: 'x'\n").rule, "tool-file-missing");
  EXPECT_EQ(explain(missing + steps +
                    "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n")
                .rule,
            "python-exception");
  EXPECT_EQ(
      explain(missing + steps + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 ***\n")
          .rule,
      "job-cancelled");
}

TEST(Explain, a_missing_environment_is_the_cause_of_modules_not_found) {
  const Diagnosis diagnosis = explain(
      "job.sh: line 15: venv/bin/activate: No such file or directory\nstarting\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
      "ModuleNotFoundError: No module named 'torch'\n");
  EXPECT_EQ(diagnosis.rule, "file-of-script-missing");
  EXPECT_EQ(diagnosis.certainty, Certainty::known);
}

TEST(Explain, redrawn_progress_bars_count_as_lines) {
  std::string bar = "bash: data/a: No such file or directory\n";
  for (int i = 0; i < 100; ++i) bar += format("\r{} %|####", i);
  EXPECT_EQ(explain(bar + "\n").certainty, Certainty::likely);
  bar += "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO TIME LIMIT ***\n";
  EXPECT_EQ(explain(bar).rule, "time-limit");
}

TEST(Explain, ranks_that_mpiexec_ended_are_not_the_cause_of_one_that_crashed) {
  EXPECT_EQ(explain("=   KILLED BY SIGNAL: 9 (Killed)\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n").rule,
            "mpi-crashed");
}

TEST(Explain, a_warning_about_a_missing_module_is_no_failure) {
  EXPECT_EQ(explain("2019 WARNING logger.py:343 -- Could not load: No module named 'tensorflow'.\n"
                    "RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility.\n")
                .rule,
            "");
}

TEST(Explain, a_failure_long_before_the_end_is_no_cause) {
  std::string text = "OSError: [Errno 28] No space left on device: '/a'\n";
  for (int i = 0; i < 2000; ++i) text += format("step {}\n", i);
  EXPECT_EQ(explain(text).certainty, Certainty::unknown);
}

TEST(Explain, a_timeout_yields_to_the_exception_that_caused_it) {
  EXPECT_EQ(explain("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1, in f\n"
                    "[rank1]: ValueError: no\n"
                    "[rank0]:[E1121 10:33:11.250000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught "
                    "collective operation "
                    "timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
                    "Timeout(ms)=600000) ran for 600029\n")
                .rule,
            "python-exception");
}

TEST(Explain, a_timeout_alone_is_likely) {
  const Diagnosis diagnosis = explain(
      "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1203, OpType=ALLREDUCE, "
      "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran\n");
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
  EXPECT_EQ(diagnosis.cause,
            "a rank did not join ALLREDUCE number 1203 of size 1 within 600000 ms, and its peers timed out");
  EXPECT_EQ(diagnosis.rank, 5);
}

TEST(Explain, records_are_matched_like_log_lines) {
  TestLogs logs;
  logs.add("rank-0001.log", "epoch 1\n", 1)
      .record("rank 1 (n2) exited after 3 s: killed by signal 9 (SIGKILL), out of memory", 1);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "rank-out-of-memory");
  EXPECT_THAT(places(diagnosis), ElementsAre("records"));
}

constexpr char kEarly[] = "rank 1 (n2) had ended with exit code 0, 4.1 s before rank 0 failed";
constexpr char kPeerClosed[] = "RuntimeError: pair.cc:534] Connection closed by peer [10.0.0.2]:44750\n";

TEST(Explain, a_rank_that_exited_early_with_success_is_the_cause_of_a_lost_connection) {
  TestLogs logs;
  logs.add("rank-0000.log", kPeerClosed, 0).add("rank-0001.log", "done\n", 1).first(0);
  logs.record("rank 0 (n1) exited after 9 s: killed by signal 6 (SIGABRT)", 0).record(kEarly, 1);
  logs.record("rank 2 (n2) had ended with exit code 0, 4.0 s before rank 0 failed", 2);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "rank-ended-early");
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.cause,
            "exited with code 0, 4.1 s earlier: uneven numbers of batches, or an early return");
  EXPECT_THAT(places(diagnosis), ElementsAre("records", "records"));
  EXPECT_EQ(diagnosis.consequences,
            "rank 0: the connection to a peer broke: the peer ended first (rank-0000.log:1)");
}

TEST(Explain, a_rank_that_exited_early_is_not_the_cause_of_other_failures) {
  TestLogs raised;
  raised.add(
      "rank-0000.log",
      std::string("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n") +
          kPeerClosed,
      0);
  EXPECT_EQ(raised.record(kEarly, 1).first(0).explain().rule, "python-exception");
  TestLogs silent;
  EXPECT_EQ(silent.add("rank-0000.log", "step 7\n", 0).record(kEarly, 1).first(0).explain().certainty,
            Certainty::unknown);
  TestLogs killed;
  killed.add("rank-0000.log", "step 7\n", 0).first(0);
  killed.record("rank 0 (n1) exited after 9 s: killed by signal 9 (SIGKILL)", 0).record(kEarly, 1);
  EXPECT_EQ(killed.explain().rule, "killed-by-signal-9");
  TestLogs other;  // a different rank lost its peer
  EXPECT_EQ(other.add("rank-0002.log", kPeerClosed, 2).record(kEarly, 1).first(0).explain().rule,
            "gloo-peer-closed");
}

TEST(Explain, cures_without_slurm_omit_slurm_commands) {
  for (const FailureRule* rule : failure_rules()) {
    for (const std::string_view line : split(rule->example, '\n')) {
      TestLogs logs;
      const Diagnosis diagnosis = logs.record(std::string(line)).without_slurm().explain();
      EXPECT_THAT(diagnosis.cure.english(), Not(HasSubstr("--mem"))) << rule->name;
      EXPECT_THAT(diagnosis.confirm, Not(HasSubstr("MaxRSS"))) << rule->name;
    }
  }
}

TEST(Explain, a_rank_killed_from_outside_shows_the_recorded_reason) {
  TestLogs logs;
  logs.add("rank-0001.log", "step 7\n", 1).first(1);
  const Diagnosis diagnosis =
      logs.record("rank 1 (n2) was terminated externally: killed by signal 15 (SIGTERM)", 1).explain();
  EXPECT_EQ(diagnosis.rule, "rank-ended-outside");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.cause, "it was killed from outside on n2: killed by signal 15 (SIGTERM)");
  // The log of the failing rank has priority.
  logs.record("state: preempted");
  EXPECT_EQ(logs.explain().rule, "state-preempted");
}

TEST(Explain, unknown_failures_show_the_three_most_notable_lines) {
  std::string text = "begin\nfoo failed with 1\n";
  for (int i = 0; i < 100; ++i) text += "progress\n";
  text += "the gizmo is killed by a gadget\nlast line\n";
  const Diagnosis diagnosis = explain(text);
  EXPECT_EQ(diagnosis.certainty, Certainty::unknown);
  EXPECT_EQ(diagnosis.cause, "");
  EXPECT_THAT(places(diagnosis), ElementsAre("log:2", "log:103", "log:104"));
}

TEST(Explain, the_last_lines_keep_their_numbers_before_blank_ones) {
  EXPECT_THAT(places(explain("one\ntwo\n\nthree\n\n\n")), ElementsAre("log:1", "log:2", "log:4"));
  EXPECT_THAT(places(explain("one\ntwo")), ElementsAre("log:1", "log:2"));
}

TEST(Explain, a_progress_bar_before_a_message_does_not_hide_it) {
  EXPECT_EQ(explain("\r 10%|#   |\r 20%|##  |RuntimeError: CUDA error: invalid device ordinal\n").rule,
            "no-such-gpu");
  EXPECT_EQ(explain("\r 10%|#   |\rOSError: [Errno 122] Disk quota exceeded: '/a'\r\n").rule,
            "quota-exceeded");
}

TEST(Explain, colours_and_prefixes_do_not_hide_a_message) {
  const Diagnosis diagnosis =
      explain("3: \x1b[31mRuntimeError\x1b[0m: CUDA error: invalid device ordinal\x1b]0;hacked\a\n");
  EXPECT_EQ(diagnosis.rule, "no-such-gpu");
  EXPECT_EQ(diagnosis.rank, 3);
  EXPECT_EQ(diagnosis.evidence.at(0).text, "RuntimeError: CUDA error: invalid device ordinal");
}

TEST(Explain, a_missing_log_is_reported) {
  const Diagnosis diagnosis =
      explain_failure({.logs = {{"/nowhere/log", "log", -1}}, .records = {}, .first_rank = {}});
  EXPECT_THAT(diagnosis.missing, ElementsAre(HasSubstr("/nowhere/log: ")));
}

TEST(RayTasks, are_explained_by_their_own_exception) {
  const std::string task = kTraceback +
                           "ray.exceptions.RayTaskError(KeyError): \x1b[36mray::train()\x1b[39m "
                           "(pid=7, ip=10.0.0.2)\n  File \"/users/ada/trial.py\", line 6, in train\n";
  const Diagnosis user = explain_log(task + "KeyError: 'lr'\n(train pid=8) epoch 1 loss 0.5\n");
  EXPECT_EQ(user.cause, "the program raised KeyError: 'lr' (trial.py:6)");
  EXPECT_EQ(user.certainty, Certainty::known);
  EXPECT_EQ(explain_log(task + "ModuleNotFoundError: No module named 'numpy'\n").rule, "module-missing");
  // The log is cut off.
  EXPECT_EQ(explain_log(task).rule, "ray-task-error");
}

TEST(RayTasks, that_no_node_can_run_outrank_the_timeout) {
  EXPECT_EQ(explain_log(
                "(autoscaler +18s) Error: No available node types can fulfill resource request {'GPU': 1.0}. "
                "Add suitable node types to this cluster to resolve this issue.\n" +
                kTraceback + "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.\n")
                .cause,
            "no node of the Ray cluster has the resources that a task requests: {'GPU': 1.0}");
}

TEST(Dumps, of_faulthandler_name_the_first_frame_outside_of_libraries) {
  const std::string frames =
      "  File \"/usr/lib/python3.11/queue.py\", line 171 in get\n  File \"/users/ada/train.py\", "
      "line 9 in next_batch\n  File \"/users/ada/train.py\", line 11 in <module>\n";
  const Diagnosis hang =
      explain_log(steps(20) + "Timeout (0:05:00)!\nThread 0x00007f30 (most recent call first):\n" + frames);
  EXPECT_EQ(hang.cause, "the program waited for 0:05:00 in the same place (train.py:9)");
  EXPECT_EQ(hang.certainty, Certainty::likely);
  const Diagnosis crash = explain_log(
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f30 (most recent "
      "call first):\n" +
      frames +
      "\nExtension modules: torch._C (total: 1)\n"
      "E1121 10:03:11.250000 7 api.py:869] failed (exitcode: -11) local_rank: 1 (pid: 13)\n"
      "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 1)\n");
  EXPECT_EQ(crash.cause, "the program crashed (train.py:9): Segmentation fault");
  EXPECT_EQ(crash.rank, 3);
  // The log is cut off.
  EXPECT_EQ(explain_log("Fatal Python error: Aborted\n").cause, "the program crashed: Aborted");
}

TEST(Tracebacks, below_parts_of_torch_explain_unspecific_exceptions) {
  const std::string load = kTraceback +
                           "  File \"/v/torch/serialization.py\", line 807, in __init__\n"
                           "    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))\n";
  const Diagnosis truncated = explain_log(load + "OSError: [Errno 22] Invalid argument\n");
  EXPECT_EQ(truncated.rule, "checkpoint-below-load");
  EXPECT_EQ(truncated.certainty, Certainty::likely);
  ASSERT_EQ(truncated.evidence.size(), 1u);
  EXPECT_EQ(truncated.evidence[0].text, "OSError: [Errno 22] Invalid argument");
  EXPECT_EQ(explain_log(load + "FileNotFoundError: [Errno 2] No such file or directory: '/a.pt'\n").rule,
            "data-file-missing");
  const std::string data =
      kTraceback + "  File \"/v/torch/utils/data/dataloader.py\", line 725, in __next__\n";
  EXPECT_EQ(explain_log(data + "ConnectionResetError: [Errno 104] Connection reset by peer\n").rule,
            "loader-worker-lost");
  EXPECT_EQ(explain_log(data + "EOFError\n").rule, "loader-worker-lost");
  EXPECT_EQ(explain_log(data + "KeyError: 'a'\n").rule, "python-exception");
  EXPECT_EQ(explain_log(kTraceback + "ConnectionResetError: [Errno 104] Connection reset by peer\n").rule,
            "gloo-peer-closed");
}

TEST(Checkpoints, whose_keys_differ_by_a_prefix_are_distinguished_from_other_models) {
  const std::string head = kTraceback + "RuntimeError: Error(s) in loading state_dict for Net:\n";
  EXPECT_EQ(explain_log(
                head + "\tMissing key(s) in state_dict: \"fc1.weight\". \n\tUnexpected key(s) in state_dict: "
                       "\"module.fc1.weight\". \n")
                .cause,
            "the keys of the checkpoint and of the model differ by the prefix module.");
  EXPECT_EQ(explain_log(head + "\tMissing key(s) in state_dict: \"_orig_mod.fc1.weight\". \n").rule,
            "state-dict-prefix");
  EXPECT_EQ(explain_log(head + "\tMissing key(s) in state_dict: \"head.weight\". \n").cause,
            "the checkpoint belongs to a different model than Net: head.weight is missing");
  EXPECT_EQ(explain_log(head + "\tMissing key(s) in state_dict: \"body.weight\". \n\tUnexpected key(s) in "
                               "state_dict: \"encoder.weight\". \n")
                .cause,
            "the checkpoint belongs to a different model than Net: body.weight is missing, it has "
            "encoder.weight");
}

}  // namespace
}  // namespace stoker::diagnose
