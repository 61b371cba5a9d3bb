#include "diagnose/run_facts.h"

#include <gmock/gmock.h>

#include "base/checkout_test.h"
#include "base/file.h"
#include "diagnose/torch_dumps.h"
#include "record/trace/flight.h"
#include "stoker/time.h"

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<FailedLog>& logs) {
  std::vector<std::string> found;
  for (const FailedLog& log : logs) found.push_back(log.name + " " + std::to_string(log.rank));
  return found;
}

TEST(RunFacts, log_names_contain_ranks) {
  EXPECT_EQ(rank_in_name("rank-0003.log"), 3);
  EXPECT_EQ(rank_in_name("train_rank12.out.gz"), 12);
  EXPECT_EQ(rank_in_name("rank_7.err"), 7);
  EXPECT_EQ(rank_in_name("slurm-812345.out"), -1);
  EXPECT_EQ(rank_in_name("frank3.log"), -1);
}

TEST(RunFacts, the_logs_of_a_folder_are_found) {
  TempDirectory box;
  ASSERT_TRUE(make_directories(box / "0/1").ok());
  for (const char* name : {"a.log", "rank-2.out.gz", "data.bin", "0/1/stderr.log"})
    ASSERT_TRUE(write_file(box / name, "x\n").ok());
  const auto logs = logs_in_folder(box.path());
  ASSERT_TRUE(logs.ok());
  EXPECT_THAT(names(*logs), ElementsAre("0/1/stderr.log 1", "a.log -1", "rank-2.out.gz 2"));
}

TEST(RunFacts, a_folder_without_logs_is_an_error) {
  TempDirectory box;
  EXPECT_EQ(logs_in_folder(box.path()).error().message(),
            box.path().string() + ": no logs in this folder (*.log, *.out, *.err, *.txt, also compressed)");
}

TEST(RunFacts, a_run_has_logs_and_a_recorded_reason) {
  TempDirectory box;
  const auto run = record::RunFolder::create(box.path(), {.name = "x"}, "name: x\n");
  ASSERT_TRUE(run.ok());
  const auto attempt = run->start_attempt("name: x\n");
  ASSERT_TRUE(attempt.ok());
  ASSERT_TRUE(write_file(attempt->log(0), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt->log(1), "fine\n").ok());
  ASSERT_TRUE(write_file(attempt->batch_log(), "fine\n").ok());
  record::RunState records;
  records.state = record::State::failed;
  records.first_rank = 1;
  records.reason = "rank 1 (n2) exited after 3 s: killed by signal 9 (SIGKILL), out of memory";
  const FailureFacts facts = facts_of_run(*run, *attempt, records, 0);
  EXPECT_THAT(names(facts.logs), ElementsAre("rank-0000.log 0", "rank-0001.log 1", "slurm.log -1"));
  const Diagnosis diagnosis = explain_failure(facts);
  EXPECT_EQ(diagnosis.rule, "rank-out-of-memory");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_THAT(diagnosis.evidence.at(0).text.english(), HasSubstr("killed by signal 9"));
}

// An attempt whose supervisor recorded these rank exits, one second apart.
struct Ends {
  Ends(const Path& folder, const std::string& job, const std::vector<record::RankEnded>& ends)
      : run(*record::RunFolder::create(folder, {.name = "x"}, "name: x\n")),
        attempt(*run.start_attempt("name: x\n")) {
    auto events = record::EventWriter::open(attempt.node_events(0));
    STOKER_CHECK(events.ok());
    double time = 100;
    const auto write = [&](std::string_view kind, const std::vector<record::Field>& fields) {
      STOKER_CHECK(events->write_at(time++, kind, fields).ok());
    };
    write(record::kAttemptStarted, {{"scheduler_job", job}});
    for (const record::RankEnded& end : ends) {
      const std::int64_t rank = end.rank, code = end.exit_code.value_or(0);
      write(record::kRankEnded, {{"rank", rank},
                                 {"host", format("n{}", rank)},
                                 {"exit_code", code},
                                 {"stopped_by_us", end.stopped_by_us}});
      const char* last = code == 1 ? "Connection closed by peer [10.0.0.2]:44750\n" : "fine\n";
      STOKER_CHECK(write_file(attempt.log(end.rank), last).ok());
    }
    records.state = record::State::failed;
  }
  Diagnosis explain(int first, const std::string& reason) {
    records.first_rank = first;
    records.reason = reason;
    return explain_failure(facts_of_run(run, attempt, records, 0));
  }
  record::RunFolder run;
  record::Attempt attempt;
  record::RunState records;
};

TEST(RunFacts, a_rank_that_exited_with_success_before_the_failure_is_named) {
  TempDirectory box;
  Ends ends(box.path(), "",
            {{.rank = 2, .exit_code = 0, .stopped_by_us = true},
             {.rank = 1, .exit_code = 0},
             {.rank = 0, .exit_code = 1},
             {.rank = 3, .exit_code = 0}});
  const Diagnosis diagnosis = ends.explain(0, "rank 0 (n0) exited after 9 s: exit code 1");
  EXPECT_EQ(diagnosis.rule, "rank-ended-early");
  EXPECT_EQ(diagnosis.rank, 1);
  ASSERT_EQ(diagnosis.evidence.size(), 1U);
  EXPECT_EQ(diagnosis.evidence[0].text, "rank 1 (n1) had ended with exit code 0, 1.0 s before rank 0 failed");
}

TEST(RunFacts, ranks_that_ended_after_the_first_failure_are_not_reported) {
  TempDirectory box;
  Ends ends(box.path(), "", {{.rank = 0, .exit_code = 1}, {.rank = 1, .exit_code = 0}});
  EXPECT_EQ(ends.explain(0, "rank 0 (n0) exited after 9 s: exit code 1").rule, "gloo-peer-closed");
}

// A failed run of one rank with this log, while GPU 0 of n0 reported `xid`.
Diagnosis explain_with_xid(int xid, const std::string& log) {
  TempDirectory box;
  Ends ends(box.path(), "", {{.rank = 0, .exit_code = 1}});
  auto events = record::EventWriter::open(ends.attempt.node_events(0));
  STOKER_CHECK(write_event(*events, record::GpuFault{.host = "n0", .gpu = 0, .code = xid}).ok());
  STOKER_CHECK(write_file(ends.attempt.log(0), log).ok());
  return ends.explain(0, "rank 0 (n0) exited after 9 s: exit code 1");
}

TEST(RunFacts, a_fault_of_a_gpu_explains_the_error_of_cuda) {
  const Diagnosis diagnosis = explain_with_xid(79, "RuntimeError: CUDA error: unspecified launch failure\n");
  EXPECT_EQ(diagnosis.rule, "xid-fell-off-bus");
  EXPECT_EQ(diagnosis.cause.english(), "GPU 0 of n0 has fallen off the bus (Xid 79)");
  EXPECT_EQ(diagnosis.node, "n0");
  EXPECT_EQ(diagnosis.evidence.at(0).where, "events-node-0000.jsonl");
  EXPECT_EQ(diagnosis.evidence.at(0).text.english(), "GPU 0 (n0) reported Xid 79: it has fallen off the bus");
}

TEST(RunFacts, a_fault_of_a_gpu_does_not_hide_a_different_failure) {
  EXPECT_EQ(explain_with_xid(94, "ModuleNotFoundError: No module named 'torchx'\n").rule, "module-missing");
}

TEST(RunFacts, an_xid_error_of_the_program_leaves_the_log_as_evidence) {
  EXPECT_EQ(explain_with_xid(31, "RuntimeError: CUDA error: an illegal memory access was encountered\n").rule,
            "illegal-memory-access");
  EXPECT_EQ(explain_with_xid(31, "fine\n").rule, "xid-program");
}

TEST(RunFacts, killed_ranks_are_looked_up_where_they_ran) {
  const std::string reason = "rank 0 (n0) exited after 9 s: killed by signal 9 (SIGKILL)";
  const auto advice = [&](const std::string& job) {
    TempDirectory box;
    return Ends(box.path(), job, {{.rank = 0, .exit_code = 0}}).explain(0, reason);
  };
  EXPECT_EQ(advice("812_3").confirm, "sacct -j 812_3 -o JobID,State,ReqMem,MaxRSS");
  EXPECT_EQ(advice("812_3").cure,
            "request more memory (for example `resources: {memory_per_node: 64GiB}`), or use fewer loader "
            "workers or "
            "a smaller batch");
  EXPECT_EQ(advice("").confirm,
            "journalctl -k | grep -i 'killed process'; grep oom_kill /sys/fs/cgroup/memory.events");
  EXPECT_EQ(
      advice("").cure,
      "use fewer loader workers or a smaller batch; increase the memory limit of the container or cgroup");
  // The origin of a log is unknown.
  const FailureFacts log = {.logs = {}, .records = {{"records", reason, 0}}, .first_rank = {}, .also = {}};
  EXPECT_EQ(explain_failure(log).confirm, "sacct -j JOB -o JobID,State,ReqMem,MaxRSS");
}

record::FlightRecorder recorder(const record::Attempt& attempt, int rank, int done) {
  auto flight = record::FlightRecorder::create(attempt.flight(rank), rank, "n" + std::to_string(rank));
  STOKER_CHECK(flight.ok());
  for (int i = 0; i < done; ++i)
    flight->end(flight->begin({"all-reduce", "float32", 40, {10}}), record::CollectiveOutcome::done);
  return std::move(*flight);
}

// Three ranks in one attempt: rank 2 is one collective behind, and its peers wait in the next one.
struct Waiting {
  explicit Waiting(const Path& folder)
      : run(*record::RunFolder::create(folder, {.name = "x"}, "name: x\n")),
        attempt(*run.start_attempt("name: x\n")) {
    for (const int rank : {0, 1, 2}) {
      STOKER_CHECK(write_file(attempt.log(rank), "fine\n").ok());
      auto flight = recorder(attempt, rank, rank == 2 ? 116 : 117);
      if (rank != 2) flight.begin({"all-reduce", "float32", 1089896, {272474}});
    }
  }
  record::RunFolder run;
  record::Attempt attempt;
};

TEST(RunFacts, a_rank_missing_from_a_collective_is_named) {
  TempDirectory box;
  Waiting waiting(box.path());
  record::RunState records;
  records.state = record::State::failed;
  records.first_rank = 0;
  records.reason =
      "rank 0 (n0) made no progress for 60.0 s at epoch 1 step 7, phase communication (timeouts.stall)";
  const Diagnosis diagnosis = explain_failure(facts_of_run(waiting.run, waiting.attempt, records, 0));
  EXPECT_EQ(diagnosis.rule, "rank-behind");
  EXPECT_EQ(diagnosis.rank, 2);
  EXPECT_EQ(diagnosis.cause,
            "on n2 it never joined all-reduce 118 of float32 [272474], which its peers wait in: its last "
            "collective was "
            "all-reduce 116 of float32 [10], done");
}

// tests/golden/torch-flight/README.md
Path torch_dump(const std::string& name) {
  return in_checkout(Path("tests/golden/torch-flight") / (name + ".bin"));
}

TEST(RunFacts, dumps_of_torch_in_the_attempt_name_the_missing_rank) {
  TempDirectory box;
  const auto run = record::RunFolder::create(box.path(), {.name = "x"}, "name: x\n");
  const auto attempt = run->start_attempt("name: x\n");
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(write_file(attempt->log(rank), "fine\n").ok());
    ASSERT_TRUE(write_file(attempt->torch_flight_prefix().string() + std::to_string(rank),
                           *read_file(torch_dump("gloo-" + std::to_string(rank)), 1_MiB))
                    .ok());
  }
  record::RunState records;
  records.state = record::State::failed;
  records.reason = "rank 0 (n0) exited after 11 min: killed by signal 6 (SIGABRT)";
  records.first_rank = 0;
  Diagnosis diagnosis = explain_failure(facts_of_run(*run, *attempt, records, 0));
  EXPECT_EQ(diagnosis.rule, "rank-behind");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(
      diagnosis.cause,
      "it never joined all-reduce 3 of float32 [7, 2], which its peers wait in: its last collective was "
      "broadcast 2 of int64 [3, 4], done (at make_dumps.py:26)");
  EXPECT_THAT(diagnosis.missing, testing::IsEmpty());

  for (const int rank : {0, 1}) {
    ASSERT_TRUE(write_file(attempt->torch_flight_prefix().string() + std::to_string(rank),
                           *read_file(torch_dump("mismatch-" + std::to_string(rank)), 1_MiB))
                    .ok());
  }
  EXPECT_EQ(explain_failure(facts_of_run(*run, *attempt, records, 0)).rule, "rank-elsewhere");
  const std::string cut = attempt->torch_flight_prefix().string() + "1";
  ASSERT_TRUE(write_file(cut, "\x80\x02}q").ok());
  diagnosis = explain_failure(facts_of_run(*run, *attempt, records, 0));
  EXPECT_THAT(diagnosis.missing, ElementsAre(cut + ": pickle ends early (byte 3)"));
  EXPECT_EQ(diagnosis.evidence[0].text,
            "rank 1 has left no dump of its collectives; its peers wait in all-reduce 2 of "
            "bfloat16 [1024, 8]");
}

TEST(RunFacts, dumps_of_torch_are_found_by_folder_and_by_file) {
  TempDirectory box;
  for (const std::string name :
       {"gloo-0", "gloo-1", "mismatch-0", "mismatch-1", "nccl-0", "nccl-1", "nccl-2", "nccl-3"})
    ASSERT_TRUE(write_file(box / name, *read_file(torch_dump(name), 1_MiB)).ok());
  ASSERT_TRUE(write_file(box / "rank-0", "a log\n").ok());
  FailureFacts of_file;
  EXPECT_TRUE(find_torch_dumps(box / "mismatch-0", of_file));
  ASSERT_EQ(of_file.records.size(), 1U);
  EXPECT_EQ(of_file.records[0].rank, 1);
  FailureFacts of_folder;
  EXPECT_TRUE(find_torch_dumps(box.path(), of_folder));
  EXPECT_EQ(of_folder.records.size(), 4U);
  FailureFacts none;
  EXPECT_FALSE(find_torch_dumps(box / "rank-0", none));
  EXPECT_FALSE(find_torch_dumps(box / "absent-0", none));
}

TEST(RunFacts, a_stopped_rank_is_the_cause_and_its_collective_the_evidence) {
  TempDirectory box;
  Waiting waiting(box.path());
  record::RunState records;
  records.state = record::State::failed;
  records.first_rank = 2;
  records.reason =
      "rank 2 (n2) was stopped by a signal (state T) for 60 s at epoch 1 step 7, phase forward "
      "(timeouts.stopped)";
  const Diagnosis diagnosis = explain_failure(facts_of_run(waiting.run, waiting.attempt, records, 0));
  EXPECT_EQ(diagnosis.rule, "rank-stopped");
  ASSERT_EQ(diagnosis.evidence.size(), 2U);
  EXPECT_EQ(diagnosis.evidence[1].where, "flight recorder");
  EXPECT_THAT(diagnosis.evidence[1].text.english(),
              HasSubstr("has not reached all-reduce 118 of float32 [272474]"));
}

struct Stuck {
  Stuck(const Path& folder, const std::vector<std::string>& stacks)
      : run(*record::RunFolder::create(folder, {.name = "x"}, "name: x\n")),
        attempt(*run.start_attempt("name: x\n")) {
    auto events = *record::EventWriter::open(attempt.node_events(0));
    for (std::size_t rank = 0; rank < stacks.size(); ++rank) {
      record::RankEnded ended;
      ended.rank = static_cast<int>(rank);
      ended.host = "n1";
      ended.signal = 15;
      ended.stopped_by_us = true;
      ended.stack = stacks[rank];
      STOKER_CHECK(write_event(events, ended).ok());
    }
    records.state = record::State::failed;
    records.first_rank = 0;
    records.reason = "rank 0 (n1) made no progress for 60 s, like all other ranks (timeouts.stall)";
  }
  Diagnosis diagnosis() const { return explain_failure(facts_of_run(run, attempt, records, 0)); }

  record::RunFolder run;
  record::Attempt attempt;
  record::RunState records;
};

TEST(RunFacts, a_hanging_rank_apart_from_its_peers_is_the_cause) {
  TempDirectory box;
  const Stuck stuck(box.path(), {"wait (q.py:1)", "wait (q.py:1)", "load (train.py:5)"});
  EXPECT_EQ(stuck.diagnosis().rule, "rank-apart");
  EXPECT_EQ(stuck.diagnosis().rank, 2);
  EXPECT_EQ(stuck.diagnosis().cause,
            "on n1 it was in load (train.py:5), and most ranks waited in wait (q.py:1)");
}

TEST(RunFacts, no_rank_is_blamed_where_all_hang_in_one_place) {
  TempDirectory box;
  EXPECT_EQ(Stuck(box / "a", {"wait (q.py:1)", "wait (q.py:1)"}).diagnosis().cause,
            "all ranks waited in wait (q.py:1)");
  // Without a majority it is unknown who waits for whom.
  EXPECT_EQ(Stuck(box / "b", {"wait (q.py:1)", "load (train.py:5)"}).diagnosis().rule, "rank-silent");
  EXPECT_EQ(Stuck(box / "c", {"load (train.py:5)"}).diagnosis().cause, "it waited in load (train.py:5)");
  EXPECT_EQ(Stuck(box / "d", {"", ""}).diagnosis().rule, "rank-silent");
}

TEST(RunFacts, ranks_that_waited_for_a_peer_until_the_time_limit_have_a_cause) {
  TempDirectory box;
  Waiting waiting(box.path());
  record::RunState records;
  records.state = record::State::stopped;
  records.reason = "time limit 1h (resources.time)";
  const double now = unix_seconds(RealClock().wall());
  records.ended = now + 600;
  EXPECT_EQ(explain_failure(facts_of_run(waiting.run, waiting.attempt, records, now)).rule, "rank-behind");
  // No long wait in the middle of a step.
  records.ended = now + 1;
  EXPECT_NE(explain_failure(facts_of_run(waiting.run, waiting.attempt, records, now)).rule, "rank-behind");
}

}  // namespace
}  // namespace stoker::diagnose
