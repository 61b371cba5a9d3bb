#include "explain/failure/run_facts.h"

#include <gmock/gmock.h>

#include "base/file.h"

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

}  // namespace
}  // namespace stoker::explain
