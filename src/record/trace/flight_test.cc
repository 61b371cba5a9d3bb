#include "record/trace/flight.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/trace/desync.h"

namespace stoker::record {
namespace {

using testing::ElementsAre;

const Collective kSum{"all-reduce", "float32", 1'089'896, {272'474}};
const Collective kCopy{"broadcast", "uint8", 6016, {6016}, 0};

TEST(FlightDump, lists_collectives_in_order_with_their_outcome) {
  TempDirectory box;
  auto recorder = FlightRecorder::create(box / "flight", 3, "node3");
  ASSERT_TRUE(recorder.ok());
  EXPECT_EQ(recorder->begin(kCopy), 1U);
  EXPECT_EQ(recorder->begin(kSum), 2U);
  EXPECT_EQ(recorder->begin({"barrier", ""}), 3U);
  recorder->end(2, CollectiveOutcome::failed);
  recorder->end(1, CollectiveOutcome::done);
  const auto flight = read_flight_dump(box / "flight");
  ASSERT_TRUE(flight.ok()) << flight.status().to_string();
  EXPECT_EQ(flight->rank, 3);
  EXPECT_EQ(flight->pid, ::getpid());
  EXPECT_EQ(flight->host, "node3");
  ASSERT_EQ(flight->entries.size(), 3U);
  EXPECT_EQ(flight->entries[0].describe(), "broadcast 1 of uint8 [6016] from rank 0");
  EXPECT_EQ(flight->entries[1].describe(), "all-reduce 2 of float32 [272474]");
  EXPECT_EQ(flight->entries[2].describe(), "barrier 3");
  EXPECT_EQ(flight->entries[0].outcome, CollectiveOutcome::done);
  EXPECT_EQ(flight->entries[1].outcome, CollectiveOutcome::failed);
  EXPECT_EQ(flight->entries[2].outcome, CollectiveOutcome::under_way);
  EXPECT_GT(flight->entries[0].seconds, 0);
  EXPECT_EQ(flight->entries[2].seconds, 0);
  EXPECT_GT(flight->entries[0].begun_unix_s, 1.5e9);
}

TEST(FlightDump, reports_the_level_of_a_collective) {
  TempDirectory box;
  auto recorder = FlightRecorder::create(box / "flight", 3, "node3");
  recorder->begin(kSum);
  recorder->mark(1, CollectiveOutcome::inter_node);
  recorder->end(1, CollectiveOutcome::done);
  recorder->mark(1, CollectiveOutcome::intra_node);  // it has ended
  recorder->begin(kSum);
  recorder->mark(2, CollectiveOutcome::inter_node);
  recorder->mark(3, CollectiveOutcome::intra_node);  // has not started
  const auto flight = read_flight_dump(box / "flight");
  ASSERT_EQ(flight->entries.size(), 2U);
  EXPECT_EQ(flight->entries[0].outcome, CollectiveOutcome::done);
  EXPECT_EQ(flight->entries[1].outcome, CollectiveOutcome::inter_node);
  EXPECT_EQ(flight->entries[1].seconds, 0);
  const std::vector<FlightDump> both{*flight, *flight};
  const std::string line = format(
      "rank 3 (pid {} on node3) waits for other hosts in all-reduce 2 of float32 "
      "[272474], which all ranks have reached",
      ::getpid());
  EXPECT_THAT(describe_desync(both), ElementsAre(line, line));
}

TEST(FlightDump, keeps_the_latest) {
  TempDirectory box;
  auto recorder = FlightRecorder::create(box / "flight", 0, "");
  for (std::size_t i = 0; i < FlightRecorder::kRecords + 10; ++i) recorder->begin(kSum);
  recorder->end(5, CollectiveOutcome::done);  // its slot contains another one now
  const auto flight = read_flight_dump(box / "flight");
  EXPECT_EQ(flight->entries.size(), FlightRecorder::kRecords);
  EXPECT_EQ(flight->entries.front().number, 11U);
  EXPECT_EQ(flight->entries.back().number, FlightRecorder::kRecords + 10);
  for (const FlightEntry& entry : flight->entries) EXPECT_EQ(entry.outcome, CollectiveOutcome::under_way);
}

TEST(FlightDump, without_a_file_only_counts) {
  FlightRecorder none;
  EXPECT_EQ(none.begin(kSum), 1U);
  none.end(1, CollectiveOutcome::done);
  FlightRecorder moved = std::move(none);
  EXPECT_EQ(moved.begin(kSum), 2U);
}

TEST(FlightDump, outlives_kill_9_of_its_writer) {
  TempDirectory box;
  const pid_t child = ::fork();
  if (child == 0) {
    auto recorder = FlightRecorder::create(box / "flight", 0, "here");
    recorder->end(recorder->begin(kCopy), CollectiveOutcome::done);
    recorder->begin(kSum);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const auto flight = read_flight_dump(box / "flight");
  ASSERT_TRUE(flight.ok());
  EXPECT_EQ(flight->entries.back().describe(), "all-reduce 2 of float32 [272474]");
  EXPECT_EQ(flight->entries.back().outcome, CollectiveOutcome::under_way);
}

std::string stored() {
  TempDirectory box;
  {
    auto recorder = FlightRecorder::create(box / "flight", 0, "here");
    recorder->begin(kSum);
  }
  return *read_file(box / "flight");
}

Result<FlightDump> parsed(const std::string& bytes) {
  return parse_flight_dump("f", std::as_bytes(std::span(bytes.data(), bytes.size())));
}

TEST(FlightDump, every_field_of_the_head_is_checked) {
  const std::string whole = stored();
  ASSERT_EQ(whole.size(), 4096 + 1024 * 88U);
  EXPECT_TRUE(parsed(whole).ok());
  EXPECT_EQ(parsed("").status().message(), "f: 0 bytes, a flight has at least 4096");
  EXPECT_EQ(parsed(whole.substr(0, 5000)).status().message(), "f: 5000 bytes, not 1024 records of 88");
  const auto changed = [&](std::size_t at, char value) {
    std::string bytes = whole;
    bytes[at] = value;
    return parsed(bytes).status();
  };
  EXPECT_EQ(changed(0, 'X').message(), "f: not a flight (its first 8 bytes)");
  EXPECT_EQ(changed(8, 9).message(), "f: flight version 9, this Stoker version reads 1");
  EXPECT_EQ(changed(32, 1).message(), "f: 94208 bytes, not 1025 records of 88");
  EXPECT_EQ(changed(35, 0x7f).code(), Code::corrupt);
  EXPECT_EQ(changed(36, 1).message(), "f: 94208 bytes, not 1024 records of 1");
  EXPECT_EQ(parsed(whole).value().entries.size(), 1U);
}

TEST(FlightDump, reads_records_damaged_by_a_crash) {
  std::string bytes = stored();
  bytes[4096 + 84] = 77;  // an unknown outcome
  bytes[4096 + 32] = '\x01';
  const auto flight = parsed(bytes);
  ASSERT_TRUE(flight.ok());
  EXPECT_EQ(flight->entries[0].outcome, CollectiveOutcome::failed);
  EXPECT_EQ(flight->entries[0].collective.operation, "\\x01ll-reduce");
}

}  // namespace
}  // namespace stoker::record
