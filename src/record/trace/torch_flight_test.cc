#include "record/trace/torch_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checkout_test.h"
#include "base/file.h"
#include "record/trace/pickle.h"

namespace stoker::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// tests/golden/torch-flight/README.md
Path golden(const std::string& name) {
  return in_checkout(Path("tests/golden/torch-flight") / (name + ".bin"));
}

std::vector<TorchFlight> dumps(const std::string& stem, const std::vector<int>& ranks) {
  std::vector<TorchFlight> flights;
  for (const int rank : ranks) {
    auto flight = read_torch_flight(golden(stem + std::to_string(rank)), rank);
    STOKER_CHECK(flight.ok());
    flights.push_back(*std::move(flight));
  }
  return flights;
}

Result<Pickle> pickled(std::string_view bytes) {
  return Pickle::parse("p", std::as_bytes(std::span(bytes.data(), bytes.size())));
}

TEST(TorchFlight, reads_what_torch_recorded_over_gloo) {
  const TorchFlight flight = dumps("gloo-", {0})[0];
  ASSERT_EQ(flight.groups.size(), 1U);
  EXPECT_EQ(flight.groups[0].name, "default_pg");
  EXPECT_THAT(flight.groups[0].ranks, ElementsAre(0, 1));
  const std::vector<FlightEntry>& entries = flight.groups[0].flight.entries;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].describe(), "all-reduce 1 of float32 [25]");
  EXPECT_EQ(entries[1].describe(), "broadcast 2 of int64 [3, 4]");
  EXPECT_EQ(entries[1].outcome, CollectiveOutcome::done);
  EXPECT_EQ(entries[1].collective.bytes, 96U);
  EXPECT_EQ(entries[1].measured_s, 0);
  EXPECT_THAT(entries[2].place, testing::StartsWith("make_dumps.py:"));
  EXPECT_GT(entries[2].begun_unix_s, 1.7e9);
}

TEST(TorchFlight, names_the_rank_that_did_not_join) {
  EXPECT_THAT(
      describe_torch_desync(dumps("gloo-", {0, 1})),
      ElementsAre(
          "rank 1 has not reached all-reduce 3 of float32 [7, 2]: its last collective was broadcast 2 "
          "of int64 [3, 4], done (at make_dumps.py:26)"));
}

TEST(TorchFlight, names_the_rank_that_calls_another_operation) {
  EXPECT_THAT(
      describe_torch_desync(dumps("mismatch-", {0, 1})),
      ElementsAre(
          "rank 1 is in broadcast 2 of bfloat16 [1024, 8] (at train.py:91), others in all-reduce 2 of "
          "bfloat16 [1024, 8]"));
}

TEST(TorchFlight, has_sizes_and_the_durations_of_the_gpu) {
  const TorchFlight flight = dumps("nccl-", {0})[0];
  const std::vector<FlightEntry>& entries = flight.groups[0].flight.entries;
  EXPECT_EQ(entries[0].collective.bytes, 2 * 6016U);
  EXPECT_EQ(entries[1].collective.bytes, 2 * 1024 * 8U);
  EXPECT_DOUBLE_EQ(entries[1].measured_s, 0.0015);
  EXPECT_EQ(entries[2].measured_s, 0) << "it has not ended";
}

// Two groups have the same name, and different ranks.
TEST(TorchFlight, compares_the_ranks_of_each_process_group) {
  const std::vector<std::string> lines = describe_torch_desync(dumps("nccl-", {0, 1, 2, 3}));
  EXPECT_THAT(lines,
              ElementsAre("rank 2 has not reached all-gather 3 of bfloat16 [512]: its last collective was "
                          "all-reduce 2 of bfloat16 [1024, 8], done (at train.py:88)",
                          "all 2 ranks have reached all-reduce 7 of bfloat16 [4096] in group tensor, but it "
                          "has not completed"));
}

TEST(TorchFlight, a_rank_without_a_dump_is_named) {
  EXPECT_THAT(
      describe_torch_desync(dumps("mismatch-", {1})),
      ElementsAre("rank 0 has left no dump of its collectives; its peers wait in broadcast 2 of bfloat16 "
                  "[1024, 8]"));
  EXPECT_THAT(describe_torch_desync({}), IsEmpty());
}

TEST(TorchFlight, refuses_everything_but_dumps) {
  const auto refused = [](std::string_view bytes) {
    return std::string(
        parse_torch_flight("d", std::as_bytes(std::span(bytes.data(), bytes.size())), 0).status().message());
  };
  EXPECT_EQ(refused(""), "d: pickle ends early (byte 0)");
  EXPECT_EQ(refused("\x80\x02}."), "d: not a dump of torch's flight recorder (no entries)");
  EXPECT_EQ(refused("\x80\x02X\x07"), "d: pickle ends early (byte 2)");
  const std::string whole = *read_file(golden("nccl-1"), 1_MiB);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_torch_flight("d", std::as_bytes(std::span(whole.data(), size)), 0).status().code(),
              Code::corrupt)
        << size;
}

TEST(TorchFlight, ignores_values_of_unexpected_types) {
  // {"entries": [7, {"collective_seq_id": "x"}, {"collective_seq_id": 5, "input_sizes": 1, "process_group":
  // None}]}
  const std::string_view bytes =
      "\x80\x02}(X\x07\0\0\0entries](K\x07}X\x11\0\0\0collective_seq_idX\x01\0\0\0xs}(X\x11\0\0\0collective_"
      "seq_idK\x05"
      "X\x0b\0\0\0input_sizesK\x01X\x0d\0\0\0process_groupNueu.";
  const std::string text(bytes.data(), 131);
  const auto flight = parse_torch_flight("d", std::as_bytes(std::span(text.data(), text.size())), 3);
  ASSERT_TRUE(flight.ok()) << flight.status().message();
  ASSERT_EQ(flight->groups.size(), 1U);
  EXPECT_EQ(flight->groups[0].flight.entries[0].describe(), "number 5");
}

TEST(Pickle, runs_no_code) {
  EXPECT_EQ(pickled("cos\nsystem\n(X\x02\0\0\0lstR.").status().message(),
            "p: pickle has opcode 99, which plain values do not need (byte 0)");
  EXPECT_THAT(std::string(pickled("\x80\x04\x8c\x02os\x8c\x06system\x93.").status().message()),
              HasSubstr("opcode 147"));
}

TEST(Pickle, reads_numbers_texts_and_shared_values) {
  using namespace std::string_view_literals;
  const auto list = pickled(
      "\x80\x02](J\xff\xff\xff\xffM\x01\x02\x8a\x02\x00\xff\x8a\0G?"
      "\xf8\0\0\0\0\0\0\x88\x8c\x01zq\x01h\x01\x94"
      "e."sv);
  ASSERT_TRUE(list.ok()) << list.status().message();
  const auto& items = std::get<Pickle::List>(list->at(list->root())).items;
  ASSERT_EQ(items.size(), 8U);
  const auto number = [&](std::size_t i) { return std::get<std::int64_t>(list->at(items[i])); };
  EXPECT_EQ(number(0), -1);
  EXPECT_EQ(number(1), 513);
  EXPECT_EQ(number(2), -256);
  EXPECT_EQ(number(3), 0);
  EXPECT_EQ(std::get<double>(list->at(items[4])), 1.5);
  EXPECT_TRUE(std::get<bool>(list->at(items[5])));
  EXPECT_EQ(items[6], items[7]);
}

TEST(Pickle, refuses_damaged_ones_with_the_position) {
  using namespace std::string_view_literals;
  const auto refused = [](std::string_view bytes) { return std::string(pickled(bytes).status().message()); };
  EXPECT_EQ(refused("\x80\x09."sv), "p: pickle has protocol 9 (byte 0)");
  EXPECT_EQ(refused("N"sv), "p: pickle ends early (byte 1)");
  EXPECT_EQ(refused("."sv), "p: pickle ends with more than one value (byte 0)");
  EXPECT_EQ(refused("h\x01."sv), "p: pickle refers to a value that it does not have (byte 0)");
  EXPECT_EQ(refused("q\x01."sv), "p: pickle remembers no value (byte 0)");
  EXPECT_EQ(refused("Na."sv), "p: pickle appends to no list (byte 1)");
  EXPECT_EQ(refused("N(Ne."sv), "p: pickle appends to no list (byte 3)");
  EXPECT_EQ(refused("}(Nu."sv), "p: pickle sets items of no dictionary (byte 3)");
  EXPECT_EQ(refused("e."sv), "p: pickle has no mark (byte 0)");
  EXPECT_EQ(refused("(\x85."sv), "p: pickle has too few values (byte 1)");
  EXPECT_EQ(refused("\x8a\x09"sv), "p: pickle has a number of 9 bytes (byte 0)");
  EXPECT_EQ(refused("X\xff\xff\xff\xff"sv), "p: pickle ends early (byte 0)");
}

}  // namespace
}  // namespace stoker::record
