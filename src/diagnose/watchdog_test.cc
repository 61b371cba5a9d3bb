#include "diagnose/watchdog.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As torch 2.8 to 2.13 print them.
std::string timed_out(int rank, int number, const std::string& type = "ALLREDUCE", int elements = 25) {
  return format(
      "[rank{}]:[E710 18:00:32.426182607 ProcessGroupNCCL.cpp:757] [Rank {}] Watchdog caught collective "
      "operation "
      "timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut={}, Timeout(ms)=600000) ran for 600038 "
      "milliseconds before timing out.\n",
      rank, rank, number, type, elements, elements);
}
std::string failed_at(int rank, int number, int enqueued,
                      const std::string& group = "0 PG GUID 0(default_pg)") {
  return format(
      "[rank{}]:[E710 18:00:32.426302794 ProcessGroupNCCL.cpp:2395] [PG ID {} Rank {}]  failure detected by "
      "watchdog at work sequence id: {} PG status: last enqueued work: {}, last completed work: {}\n",
      rank, group, rank, number, enqueued, number - 1);
}
std::string signalled(int rank, int enqueued, int completed) {
  return format(
      "[rank{}]:[E710 18:00:32.603241927 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank {}] "
      "Received "
      "a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug "
      "info. Last "
      "enqueued NCCL work: {}, last completed NCCL work: {}.This is most likely caused by incorrect usages "
      "of "
      "collectives, e.g., wrong sizes used across ranks.\n",
      rank, rank, enqueued, completed);
}

TEST(Watchdog, names_the_rank_that_is_behind) {
  TestLogs logs;
  logs.add("job.log", timed_out(0, 57) + failed_at(0, 57, 59) + timed_out(2, 57) + failed_at(2, 57, 58) +
                          signalled(1, 56, 56));
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "rank-behind");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(
      diagnosis.cause.english(),
      "it never joined all-reduce 57 of 25 elements, which its peers wait in: its last collective was number "
      "56, done");
  EXPECT_EQ(diagnosis.evidence[0].where, "NCCL's watchdog");
  EXPECT_THAT(diagnosis.consequences.english(), HasSubstr("did not join ALLREDUCE number 57 of size 25"));
}

TEST(Watchdog, names_ranks_that_call_different_collectives) {
  TestLogs logs;
  logs.add("rank-0000.log", timed_out(0, 57) + failed_at(0, 57, 57), 0);
  logs.add("rank-0001.log", timed_out(1, 57, "BROADCAST", 8) + failed_at(1, 57, 57), 1);
  logs.add("rank-0002.log", timed_out(2, 57) + failed_at(2, 57, 57), 2);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "rank-elsewhere");
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.cause.english(),
            "it called broadcast 57 of 8 elements, and its peers called all-reduce 57 of 25 elements: their "
            "code or "
            "shapes differ by rank");
}

TEST(Watchdog, names_ranks_that_pass_different_sizes) {
  TestLogs logs;
  logs.add("job.log",
           timed_out(0, 7) + failed_at(0, 7, 7) + timed_out(1, 7, "ALLREDUCE", 50) + failed_at(1, 7, 7));
  EXPECT_EQ(logs.explain().cause.english(),
            "it called all-reduce 7 of 50 elements, and its peers called all-reduce 7 of 25 elements: their "
            "code or "
            "shapes differ by rank");
}

TEST(Watchdog, names_a_rank_that_printed_nothing) {
  TestLogs logs;
  logs.add("rank-0000.log", timed_out(0, 57) + failed_at(0, 57, 57), 0);
  logs.add("rank-0001.log", "reading the data\n", 1);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "rank-position-unknown");
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
  EXPECT_EQ(diagnosis.rank, 1);
  EXPECT_EQ(diagnosis.cause.english(),
            "it has reported nothing, and probably never joined all-reduce 57 of 25 elements, which its "
            "peers wait in");
}

TEST(Watchdog, compares_the_ranks_of_one_process_group) {
  TestLogs logs;
  // Each group counts from 1.
  logs.add("job.log", timed_out(0, 9) + failed_at(0, 9, 9, "5 PG GUID 37(TENSOR)") + timed_out(1, 9) +
                          failed_at(1, 9, 9, "5 PG GUID 37(TENSOR)") + signalled(0, 62, 62) +
                          signalled(1, 62, 62) + signalled(2, 3, 3));
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "watchdog-timeout");
  EXPECT_EQ(diagnosis.certainty, Certainty::likely);
}

TEST(Watchdog, draws_no_conclusion_from_one_rank_or_from_equal_ranks) {
  for (const std::string& text :
       {timed_out(0, 57) + failed_at(0, 57, 57), timed_out(0, 57) + failed_at(0, 57, 59) + timed_out(1, 57) +
                                                     failed_at(1, 57, 57) + signalled(1, 57, 56)}) {
    TestLogs logs;
    logs.add("job.log", text);
    EXPECT_EQ(logs.explain().rule, "watchdog-timeout") << text;
  }
  EXPECT_THAT(watchdog_records({}), IsEmpty());
}

TEST(Watchdog, an_error_of_a_rank_is_the_cause) {
  TestLogs logs;
  logs.add("rank-0000.log", timed_out(0, 57) + failed_at(0, 57, 57), 0);
  logs.add("rank-0001.log", "RuntimeError: CUDA error: invalid device ordinal\n" + signalled(1, 56, 56), 1);
  const Diagnosis diagnosis = logs.explain();
  EXPECT_EQ(diagnosis.rule, "no-such-gpu");
  EXPECT_EQ(diagnosis.evidence.size(), 2U);
}

}  // namespace
}  // namespace stoker::diagnose
