#include "explain/failure/run_facts.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/time.h"
#include "record/trace/flight.h"

namespace stoker::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<FailedLog>& logs) {
  std::vector<std::string> found;
  for (const FailedLog& log : logs) found.push_back(log.name + " " + std::to_string(log.rank));
  return found;
}

TEST(RunFacts, ranks_stand_in_the_names_of_logs) {
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
            box.path().string() + ": no log in it (files like *.log, *.out, *.err, *.txt, packed or not)");
}

TEST(RunFacts, a_run_gives_its_logs_and_the_reason_of_its_records) {
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
  records.reason = "rank 1 (n2) left after 3 s: killed by signal 9 (SIGKILL), out of memory";
  const FailureFacts facts = facts_of_run(*run, *attempt, records, 0);
  EXPECT_THAT(names(facts.logs), ElementsAre("rank-0000.log 0", "rank-0001.log 1", "slurm.log -1"));
  const Diagnosis diagnosis = explain_failure(facts);
  EXPECT_EQ(diagnosis.rule, "rank-out-of-memory");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_THAT(diagnosis.evidence.at(0).text, HasSubstr("killed by signal 9"));
}

record::FlightRecorder recorder(const record::Attempt& attempt, int rank, int done) {
  auto flight = record::FlightRecorder::create(attempt.flight(rank), rank, "n" + std::to_string(rank));
  CHECK(flight.ok());
  for (int i = 0; i < done; ++i)
    flight->end(flight->begin({"all-reduce", "float32", 40, {10}}), record::CollectiveOutcome::done);
  return std::move(*flight);
}

// Three ranks in one attempt, of which rank 2 has done one collective less and the others wait in the next.
struct Waiting {
  explicit Waiting(const Path& folder)
      : run(*record::RunFolder::create(folder, {.name = "x"}, "name: x\n")),
        attempt(*run.start_attempt("name: x\n")) {
    for (const int rank : {0, 1, 2}) {
      CHECK(write_file(attempt.log(rank), "fine\n").ok());
      auto flight = recorder(attempt, rank, rank == 2 ? 116 : 117);
      if (rank != 2) flight.begin({"all-reduce", "float32", 1089896, {272474}});
    }
  }
  record::RunFolder run;
  record::Attempt attempt;
};

TEST(RunFacts, a_rank_that_did_not_come_to_a_collective_is_named_with_it) {
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
  EXPECT_EQ(
      diagnosis.cause,
      "on n2 it never came to all-reduce 118 of float32 [272474], for which the others wait: its last was "
      "all-reduce 116 of float32 [10], done");
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
  EXPECT_THAT(diagnosis.evidence[1].text, HasSubstr("has not come to all-reduce 118 of float32 [272474]"));
}

TEST(RunFacts, ranks_that_waited_for_another_until_their_time_was_over_had_a_cause) {
  TempDirectory box;
  Waiting waiting(box.path());
  record::RunState records;
  records.state = record::State::stopped;
  records.reason = "time 1h is over (resources.time)";
  const double now = unix_seconds(RealClock().wall());
  records.ended = now + 600;
  EXPECT_EQ(explain_failure(facts_of_run(waiting.run, waiting.attempt, records, now)).rule, "rank-behind");
  // In the middle of a step nobody waits for long.
  records.ended = now + 1;
  EXPECT_NE(explain_failure(facts_of_run(waiting.run, waiting.attempt, records, now)).rule, "rank-behind");
}

}  // namespace
}  // namespace stoker::explain
