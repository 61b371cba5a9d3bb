#include "farm/ledger/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "farm/ledger/run_times.h"

namespace stoker::farm {
namespace {

using testing::ElementsAre;

// The line without its end.
std::string text_of(const LedgerRecord& record) {
  std::string line = ledger_line(record);
  line.pop_back();
  return line;
}

const TaskEnd kEnd{.task = 7,
                   .key = 0xABC,
                   .attempt = 2,
                   .outcome = TaskOutcome::out_of_memory,
                   .signal = 9,
                   .start = 1.5,
                   .seconds = 0.25,
                   .peak_bytes = 4096,
                   .offset = 10,
                   .length = 20,
                   .is_kept = true};

TEST(LedgerLine, an_end_survives_a_round_trip) {
  const auto record = parse_ledger_line(text_of(kEnd));
  ASSERT_TRUE(record);
  const auto& end = std::get<TaskEnd>(*record);
  EXPECT_EQ(end.task, 7U);
  EXPECT_EQ(end.key, 0xABCU);
  EXPECT_EQ(end.outcome, TaskOutcome::out_of_memory);
  EXPECT_EQ(end.signal, 9);
  EXPECT_EQ(end.length, 20U);
  EXPECT_TRUE(end.is_kept);
  EXPECT_EQ(text_of(*record), text_of(kEnd));
}

TEST(LedgerLine, texts_with_blanks_survive_a_round_trip) {
  const WorkerStart start{
      .id = "a", .who = {"n 1#%", 5, 6, "boot pid:[7]"}, .job = "", .list_digest = 3, .time = 2};
  const auto record = parse_ledger_line(text_of(start));
  ASSERT_TRUE(record);
  EXPECT_EQ(std::get<WorkerStart>(*record).who.host, "n 1#%");
  EXPECT_EQ(std::get<WorkerStart>(*record).who.boot, "boot pid:[7]");
  EXPECT_EQ(std::get<WorkerStart>(*record).job, "");
  const WorkerStart dash{.id = "a", .who = {"-", 5, 6, "b"}, .job = "-", .list_digest = 3, .time = 2};
  EXPECT_EQ(std::get<WorkerStart>(*parse_ledger_line(text_of(dash))).job, "-");
}

TEST(LedgerLine, tasks_are_ranges) {
  const TaskClaim claim{"w", {0, 1, 2, 5, 7, 8}};
  EXPECT_THAT(text_of(claim), testing::StartsWith("claim w 0-2,5,7-8 #"));
  EXPECT_THAT(std::get<TaskClaim>(*parse_ledger_line(text_of(claim))).tasks, ElementsAre(0, 1, 2, 5, 7, 8));
}

TEST(LedgerLine, a_changed_or_cut_line_is_damaged) {
  const std::string line = text_of(kEnd);
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(parse_ledger_line(changed)) << changed;
    EXPECT_FALSE(parse_ledger_line(line.substr(0, i))) << i;
  }
}

TEST(RunTimes, quantiles_are_upper_bounds_within_a_tenth) {
  RunTimes times;
  EXPECT_EQ(times.quantile(0.9), 0);
  for (int i = 1; i <= 1000; ++i) times.add(i * 0.01);
  EXPECT_GE(times.quantile(0.9), 9.0);
  EXPECT_LE(times.quantile(0.9), 9.9);
  EXPECT_NEAR(times.mean(), 5.005, 1e-9);
}

}  // namespace
}  // namespace stoker::farm
