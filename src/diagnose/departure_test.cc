#include "diagnose/departure.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;

std::string trains(int ranks, int step, int steps = 300) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank)
    text +=
        format("2026-01-01 10:00:0{},100 | rank{} | INFO | step {}/{} loss 0.5\n", rank, rank, step, steps);
  return text;
}

std::string raises(int rank, const std::string& exception) {
  return format(
      "[rank{}]: Traceback (most recent call last):\n[rank{}]:   File \"train.py\", line 7, in step\n"
      "[rank{}]: RuntimeError: {}\n",
      rank, rank, rank, exception);
}

const std::string kTimedOut =
    "[../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete";
const std::string kClosed = "[../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:5555";

TEST(Departure, the_rank_that_waits_elsewhere_did_not_join) {
  const std::string log = trains(3, 8) +
                          "2026-01-01 10:00:05,100 | rank1 | INFO | waiting for /scratch/a.lock\n" +
                          raises(0, kTimedOut) + raises(2, kTimedOut);
  const Diagnosis found = explain_log(log + raises(1, kClosed));
  EXPECT_EQ(found.rule, "rank-did-not-join");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.cause,
            "it did not join the collective that its peers waited in; its last line: waiting for "
            "/scratch/a.lock");
  EXPECT_EQ(found.certainty, Certainty::likely);
  EXPECT_EQ(found.evidence.at(0).where, "train.log:4");
  EXPECT_THAT(found.consequences.english(), HasSubstr("did not join a collective"));
  // All ranks timed out, or too few of them are known.
  EXPECT_EQ(explain_log(log + raises(1, kTimedOut)).rule, "gloo-timeout");
  EXPECT_EQ(explain_log(trains(4, 8) + raises(0, kTimedOut) + raises(3, kTimedOut)).rule, "gloo-timeout");
}

TEST(Departure, the_rank_that_finished_first_left_its_peers) {
  const Diagnosis found =
      explain_log(trains(3, 8) +
                  "2026-01-01 10:00:05,100 | rank2 | INFO | finished 263 steps\n"
                  "2026-01-01 10:00:05,200 | rank2 | INFO | destroying process group\n" +
                  raises(1, kClosed) + raises(0, kClosed) + "launch: task 1: exited with exit code 1\n");
  EXPECT_EQ(found.rule, "rank-finished-first");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.cause, "it had finished and left, while its peers continued: finished 263 steps");
  EXPECT_EQ(explain_log(trains(2, 8) + raises(0, kClosed)).rule, "rank-left-first");
  // One log for each rank.
  TestLogs logs;
  logs.add("rank-0000.log", kTraceback + "RuntimeError: " + kClosed + "\n", 0)
      .add("rank-0001.log", steps(3) + "training done\n", 1);
  EXPECT_EQ(logs.explain().rule, "rank-finished-first");
  EXPECT_EQ(logs.explain().rank, 1);
}

TEST(Departure, a_launcher_names_the_first_task_to_end) {
  const std::string log = trains(3, 8) + raises(0, kClosed) + raises(1, kClosed);
  const Diagnosis signal =
      explain_log(log + "launch: task 2: Segmentation fault\nlaunch: task 0: exited with exit code 1\n");
  EXPECT_EQ(signal.cause, "the program crashed in task 2: Segmentation fault");
  EXPECT_EQ(signal.rank, 2);
  const std::string ended =
      "srun: error: n2: task 6: Exited with exit code 1\nsrun: Terminating StepId=7.0\n";
  const std::string cancelled =
      "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T10:00:00 ***\n";
  for (const char* later :
       {"", "srun: error: n1: tasks 0-3: Terminated\n", "srun: error: n1: tasks 0-3: Killed\n"}) {
    const Diagnosis exit = explain_log(steps(3) + ended + cancelled + later);
    EXPECT_EQ(exit.cause, "task 6 on n2 ended first: Exited with exit code 1") << later;
    EXPECT_EQ(exit.node, "n2");
    EXPECT_EQ(exit.certainty, Certainty::likely);
  }
  EXPECT_EQ(explain_log(steps(3) + cancelled + ended).rule, "step-cancelled");
  // An exit code alone shows no cause, and an error is the cause.
  EXPECT_EQ(explain_log(steps(3) + ended).rule, "");
  EXPECT_EQ(explain_log(steps(3) + kTraceback + "KeyError: 'lr'\n" + ended + cancelled).rule,
            "python-exception");
}

TEST(Departure, processes_without_a_line_are_missing) {
  const auto starts = [](int rank) { return format("{}: INFO connecting, num_processes=4\n", rank); };
  const std::string refused = "RPC: /xla.coordination.CoordinationService/RegisterTask\n";
  const Diagnosis found = explain_log(starts(3) + starts(0) + starts(1) + "3: " + refused + "0: " + refused);
  EXPECT_EQ(found.cause,
            "process 2 of 4 did not start, or too late: its peers waited, and the log has no line of it");
  EXPECT_EQ(found.rank, 2);
  // A line about a rank is none of that rank. Most of them are unknown, or none is missing.
  EXPECT_EQ(
      explain_log(starts(3) + starts(0) + starts(1) + "waiting for rank 2: no answer\n3: " + refused).rank,
      2);
  EXPECT_EQ(explain_log(starts(0) + "0: " + refused).rule, "jax-not-registered");
  EXPECT_EQ(explain_log(starts(0) + starts(1) + starts(2) + starts(3) + "0: " + refused).rule,
            "jax-not-registered");
}

const std::string kClients =
    "torch.distributed.DistStoreError: Timed out after 900 seconds waiting for clients. 1/2 clients "
    "joined.\n";

TEST(Departure, an_exception_before_the_rendezvous_timed_out_is_the_cause) {
  EXPECT_EQ(
      explain_log(
          "[0] loading a/b\n[1] loading a/b\n[0] hub.errors.AccessError: 401 for a/b\n[0] log in\n[1] " +
          kClients)
          .cause,
      "the program raised hub.errors.AccessError: 401 for a/b");
  EXPECT_EQ(explain_log("[0] huggingface_hub.errors.GatedRepoError: 401 Client Error.\n[1] " + kClients).rule,
            "hub-gated");
  EXPECT_EQ(explain_log(
                "[0] huggingface_hub.errors.GatedRepoError: 401 Client Error.\n[0] Cannot access gated repo "
                "for url https://huggingface.co/a/b-2/resolve/main/config.json.\n[1] " +
                kClients)
                .cause,
            "no access to a gated repository of Hugging Face: a/b-2");
  // The rank continued after it.
  EXPECT_EQ(
      explain_log("[0] hub.errors.AccessError: 503 for a/b\n[0] trying the mirror instead, retrying\n[1] " +
                  kClients)
          .rule,
      "clients-missing");
  EXPECT_EQ(explain_log("[0] hub.errors.AccessError: 401\n" + steps(6, "[0] ") + "[1] " + kClients).rule,
            "clients-missing");
  // In the log of a later rank.
  TestLogs logs;
  logs.add("rank-0000.log", kTraceback + kClients, 0)
      .add("rank-0001.log", kTraceback + "KeyError: 'lr'\n", 1);
  EXPECT_EQ(logs.explain().rule, "python-exception");
  EXPECT_EQ(logs.explain().rank, 1);
}

TEST(Departure, a_fault_of_the_gpu_explains_the_error_of_cuda) {
  const std::string error = raises(3, "CUDA error: unspecified launch failure");
  const std::string xid =
      "n2 kernel: [812.1] NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', GPU has fallen off "
      "the bus.\n";
  const Diagnosis found = explain_log(steps(3) + error + xid);
  EXPECT_EQ(found.cause, "GPU 0000:5d:00 has a hardware or driver fault (Xid 79)");
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.node, "n2");
  EXPECT_EQ(explain_log(steps(3) + raises(3, "no such key") + xid).rule, "python-exception");
}

}  // namespace
}  // namespace stoker::diagnose
