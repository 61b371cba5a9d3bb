#include "diagnose/root_cause.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

TEST(HandledErrors, logging_errors_are_no_cause) {
  const std::string report =
      "--- Logging error ---\n" + kTraceback +
      "OSError: [Errno 28] No space left on device\n\nDuring handling of the above exception, another "
      "exception "
      "occurred:\n\n" +
      kTraceback +
      "TypeError: not all arguments converted during string formatting\nCall stack:\n"
      "  File \"train.py\", line 5, in <module>\nMessage: 'CUDA out of memory. Tried to allocate 2.00 GiB'\n"
      "Arguments: (5,)\n";
  EXPECT_EQ(explain_log(report + steps(3)).rule, "");
  const Diagnosis failed = explain_log(report + steps(3) + kTraceback + "KeyError: 'lr'\n");
  EXPECT_EQ(failed.cause, "the program raised KeyError: 'lr' (train.py:7)");
  EXPECT_EQ(failed.certainty, Certainty::known);
}

TEST(HandledErrors, exceptions_of_destructors_are_no_cause) {
  const std::string ignored =
      "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n" + kTraceback +
      "AssertionError: can only test a child process\n";
  EXPECT_EQ(explain_log(ignored).rule, "");
  EXPECT_EQ(explain_log(kTraceback + "KeyError: 'lr'\n" + ignored).cause,
            "the program raised KeyError: 'lr' (train.py:7)");
  EXPECT_EQ(explain_log("Exception ignored in: <function f>\n" + kTraceback + "KeyError: 'a'\n" + kTraceback +
                        "KeyError: 'b'\n")
                .cause,
            "the program raised KeyError: 'b' (train.py:7)");
}

TEST(HandledErrors, callbacks_of_libraries_yield_to_the_exception_of_the_program) {
  const std::string callback =
      "Traceback (most recent call last):\n"
      "  File \"/usr/lib/python3.11/asyncio/base_events.py\", line 806, in call_soon_threadsafe\n"
      "    self._check_closed()\nRuntimeError: Event loop is closed\n";
  EXPECT_EQ(explain_log(callback + callback + kTraceback + "ValueError: shape (256, 10)\n").cause,
            "the program raised ValueError: shape (256, 10) (train.py:7)");
  EXPECT_EQ(explain_log(callback + kTraceback + "ValueError: shape\nException ignored in: <coroutine f>\n" +
                        kTraceback + "ImportError: sys.meta_path is None\n")
                .cause,
            "the program raised ValueError: shape (train.py:7)");
  // The first of two chained exceptions is the cause.
  EXPECT_EQ(
      explain_log(callback + "\nDuring handling of the above exception, another exception occurred:\n\n" +
                  kTraceback + "OSError: no connection\n")
          .cause,
      "the program raised RuntimeError: Event loop is closed (train.py:7)");
  // Alone, or after the program's own, nothing changes.
  EXPECT_EQ(explain_log(callback).cause, "the program raised RuntimeError: Event loop is closed");
  EXPECT_EQ(explain_log(kTraceback + "ValueError: shape (256, 10)\n" + callback).cause,
            "the program raised ValueError: shape (256, 10) (train.py:7)");
}

TEST(HandledErrors, an_error_that_the_program_logged_yields_to_one_that_it_did_not_catch) {
  const std::string logged =
      "2026-01-01 10:00:00,000 ERROR reader: [Errno 2] No such file or directory: '/logs/dash.log'\n"
      "2026-01-01 10:00:01,000 INFO reader: continues without it\n";
  EXPECT_EQ(explain_log(logged + kTraceback + "ModuleNotFoundError: No module named 'a'\n").rule,
            "module-missing");
  // A general exception may follow from it.
  EXPECT_EQ(explain_log(logged + kTraceback + "RuntimeError: the worker failed\n").rule,
            explain_log(logged).rule);
}

TEST(HandledErrors, an_error_after_which_the_program_continued_yields_to_a_later_one) {
  const std::string last = kTraceback + "KeyError: 'last'\n";
  EXPECT_EQ(explain_log(kTraceback + "KeyError: 'first'\n" + steps(200) + last).cause,
            "the program raised KeyError: 'last' (train.py:7)");
  // A logging call printed it.
  EXPECT_EQ(
      explain_log("ERROR:root:cannot load\n" + kTraceback + "KeyError: 'first'\n" + steps(20) + last).cause,
      "the program raised KeyError: 'last' (train.py:7)");
  // Close to each other, the first one is the cause.
  EXPECT_EQ(explain_log(kTraceback + "KeyError: 'first'\n" + last).cause,
            "the program raised KeyError: 'first' (train.py:7)");
  TestLogs ranks;
  EXPECT_EQ(
      ranks.add("rank-0000.log", kTraceback + "KeyError: 'first'\n" + steps(200) + last, 0).explain().cause,
      "the program raised KeyError: 'last' (train.py:7)");
}

TEST(HandledErrors, an_error_after_which_the_program_continued_to_the_end_is_only_likely) {
  EXPECT_EQ(explain_log(kTraceback + "KeyError: 'x'\n" + steps(5)).certainty, Certainty::known);
  EXPECT_EQ(explain_log(kTraceback + "KeyError: 'x'\n" + steps(100)).certainty, Certainty::likely);
  EXPECT_EQ(explain_log("WARNING:root:retry\n" + kTraceback + "KeyError: 'x'\n" + steps(20)).certainty,
            Certainty::likely);
}

TEST(HandledErrors, of_a_successful_program_are_no_cause) {
  TestLogs logs;
  logs.add("train.log", kTraceback + "KeyError: 'x'\n" + steps(3)).facts.has_succeeded = true;
  const Diagnosis none = logs.explain();
  EXPECT_EQ(none.rule, "");
  EXPECT_EQ(none.certainty, Certainty::unknown);
  EXPECT_TRUE(none.evidence.empty());
  // A line that shows a failure of a successful script.
  logs.facts.also.push_back({.rule = "failed-line",
                             .level = Level::job,
                             .what = Message("a line shows a failure"),
                             .evidence = {{"train.log:3", Message("KeyError: 'x'")}},
                             .cure = {}});
  EXPECT_EQ(logs.explain().rule, "python-exception");
  EXPECT_EQ(logs.explain().certainty, Certainty::likely);
}

constexpr char kLost[] = "rank 0 (n1) was lost: its connection broke (node gone, or killed from outside)";
constexpr char kKilledOnN2[] =
    "slurmstepd-n2: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM "
    "Killed.\n";

// Rank 0 on n1, rank 1 on n2. Slurm killed the step, and the connection of rank 0 broke first.
TestLogs& two_nodes(TestLogs& logs) {
  logs.facts.hosts = {{0, "n1"}, {1, "n2"}};
  logs.facts.first_rank = 0;
  return logs.record(kLost, 0)
      .add("rank-0000.log", kTraceback + "RuntimeError: the peer is gone\n", 0)
      .add("rank-0001.log", steps(3), 1);
}

TEST(MemoryKill, names_the_node_and_rank_of_the_evidence) {
  TestLogs logs;
  const Diagnosis diagnosis = two_nodes(logs).add("slurm.log", kKilledOnN2).explain();
  EXPECT_EQ(diagnosis.rule, "cgroup-oom-kill");
  EXPECT_EQ(diagnosis.cause,
            "the kernel killed a process of step 12.0: the job used more memory than requested");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.node, "n2");
  EXPECT_EQ(diagnosis.certainty, Certainty::known);
}

TEST(MemoryKill, srun_names_the_task) {
  TestLogs logs;
  two_nodes(logs).add(
      "slurm.log",
      "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have "
      "been OOM Killed.\nsrun: error: n2: task 1: Out Of Memory\n");
  logs.facts.hosts = {{0, "n1"}, {1, "n2"}, {2, "n2"}};
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "srun-out-of-memory");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.node, "n2");
}

TEST(MemoryKill, without_a_node_blames_no_rank) {
  TestLogs logs;
  const Diagnosis diagnosis =
      two_nodes(logs)
          .add("slurm.log", "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.\n")
          .explain();
  EXPECT_EQ(diagnosis.rule, "cgroup-oom-kill");
  EXPECT_FALSE(diagnosis.rank);
  TestLogs several;
  two_nodes(several).add("slurm.log", kKilledOnN2).facts.hosts = {{0, "n1"}, {1, "n2"}, {2, "n2"}};
  EXPECT_FALSE(several.explain().rank);
  EXPECT_EQ(several.explain().node, "n2");
}

TEST(MemoryKill, does_not_replace_a_known_cause) {
  TestLogs logs;
  logs.add("rank-0000.log", "OSError: [Errno 28] No space left on device: '/a'\n", 0)
      .add("slurm.log", kKilledOnN2);
  EXPECT_EQ(logs.explain().rule, "disk-full");
}

TEST(PeerFailures, of_jax_tasks_are_named) {
  const Diagnosis died = explain_log(
      "F external/xla/xla/pjrt/distributed/client.h:80] Terminating process because the JAX distributed "
      "service "
      "detected fatal errors. This most likely indicates that another task died; see the other task logs for "
      "more details.\nUNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
      "/job:jax_worker/replica:0/task:3\n");
  EXPECT_EQ(died.cause, "task 3 ended, or its heartbeats did not arrive");
  EXPECT_EQ(died.cure, "read the log of task 3");
  EXPECT_EQ(died.certainty, Certainty::likely);
  // The memory of a device is the cause of the failure.
  const Diagnosis memory = explain_log(
      "/job:jax_worker/replica:0/task:3\njaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of "
      "memory "
      "while trying to allocate 7406166528 bytes.\n");
  EXPECT_EQ(memory.cause, "the device is out of memory: 7406166528 bytes more requested");
  EXPECT_EQ(explain_log("I coordination_service.cc:535] /job:jax_worker/replica:0/task:1 has connected to "
                        "coordination service. Incarnation: 1\n")
                .rule,
            "");
}

// One start of a worker that fails, as multiprocessing repeats it.
const std::string kFailedWorker = kTraceback +
                                  "RuntimeError: \n        An attempt has been made to start a new process "
                                  "before the\n        current process has finished its bootstrapping "
                                  "phase.\n\n        Use the idiom in the main module.\n";

TEST(RootCause, an_error_that_repeats_until_the_interrupt_is_the_cause) {
  std::string log;
  for (int i = 0; i < 40; ++i) log += "loading\n" + kFailedWorker + "starting workers\n";
  const Diagnosis spawn = explain_log(log + kTraceback + "KeyboardInterrupt\n");
  EXPECT_EQ(spawn.rule, "main-not-guarded");
  EXPECT_EQ(spawn.certainty, Certainty::known);
  const std::string limit =
      "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T10:03:11 DUE TO TIME LIMIT ***\n";
  std::string broken;
  for (int i = 0; i < 30; ++i) broken += "next file\nopening\nreading\n" + kTraceback + "KeyError: 'lr'\n";
  EXPECT_EQ(explain_log(broken + limit).rule, "python-exception");
  // A training that works in spite of it.
  std::string working;
  for (int i = 0; i < 8; ++i) working += kTraceback + "KeyError: 'lr'\n" + steps(20);
  EXPECT_EQ(explain_log(working + limit).rule, "time-limit");
  EXPECT_EQ(explain_log(steps(3) + kTraceback + "KeyboardInterrupt\n").rule, "interrupted");
}

TEST(RootCause, the_line_of_the_program_is_that_of_the_outer_exception) {
  const std::string library =
      "Traceback (most recent call last):\n  File \"/v/lib/python3.11/site-packages/store/a.py\", line 3, in "
      "get\n";
  const std::string direct =
      "\nThe above exception was the direct cause of the following exception:\n\n" + kTraceback;
  const Diagnosis entry = explain_log(library + "FileNotFoundError: tp\n" + direct + "KeyError: 'tp'\n");
  EXPECT_EQ(entry.cause, "the program raised KeyError: 'tp' (train.py:7)");
  const Diagnosis same = explain_log(library + "LookupError: no row 7\n" + direct + "OSError: failed\n");
  EXPECT_EQ(same.cause, "the program raised LookupError: no row 7 (train.py:7)");
  // A path is a file, whatever is raised from it.
  EXPECT_EQ(explain_log(library + "FileNotFoundError: data/a.nc\n" + direct + "KeyError: 'a'\n").rule,
            "file-not-found");
  EXPECT_EQ(explain_log(kTraceback + "FileNotFoundError: config\n").certainty, Certainty::likely);
}

TEST(RootCause, a_refused_connection_follows_from_the_timeout_that_ended_the_peer) {
  const std::string left =
      kTraceback +
      "torch.distributed.DistStoreError: wait timeout after 9000ms, keys: /default_pg/0//cpu//0/1\n";
  const std::string refused =
      "[E1128 13:37:16.57 ProcessGroupGloo.cpp:67] Gloo connectFullMesh failed with [pair.cc:152] timed out "
      "connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:29089\n";
  EXPECT_EQ(explain_log(left + refused).rule, "store-key-missing");
  EXPECT_EQ(explain_log(refused).rule, "gloo-full-mesh");
  EXPECT_EQ(explain_log(refused + left).rule, "gloo-full-mesh");
}

}  // namespace
}  // namespace stoker::diagnose
