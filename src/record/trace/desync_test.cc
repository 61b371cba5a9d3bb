#include "record/trace/desync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Collective kReduced{"all-reduce", "float32", 1'089'896, {272'474}};
const Collective kCopied{"broadcast", "uint8", 6016, {6016}, 0};

FlightDump dump_of(int rank, std::vector<Collective> collectives) {
  FlightDump flight{.rank = rank, .pid = 40 + rank, .host = "node3"};
  for (Collective& collective : collectives) {
    if (!flight.entries.empty()) flight.entries.back().outcome = CollectiveOutcome::done;
    flight.entries.push_back({.number = flight.entries.size() + 1, .collective = std::move(collective)});
  }
  return flight;
}

TEST(Desync, names_ranks_that_are_behind_or_in_a_different_collective) {
  const FlightDump first = dump_of(0, {kCopied, kReduced});
  EXPECT_THAT(describe_desync({}), IsEmpty());
  EXPECT_THAT(
      describe_desync(std::vector{first, dump_of(1, {kCopied, kReduced})}),
      ElementsAre("all 2 ranks have reached all-reduce 2 of float32 [272474], but it has not completed"));
  EXPECT_THAT(describe_desync(std::vector{first, dump_of(1, {kCopied}), dump_of(2, {})}),
              ElementsAre("rank 1 (pid 41 on node3) has not reached all-reduce 2 of float32 [272474]: its "
                          "last collective was "
                          "broadcast 1 of uint8 [6016] from rank 0, under way",
                          "rank 2 (pid 42 on node3) has started no collective; its peers have reached "
                          "all-reduce 2 of float32 [272474]"));
  EXPECT_THAT(describe_desync(std::vector{first, dump_of(1, {kCopied, kCopied})}),
              ElementsAre("rank 1 (pid 41 on node3) is in broadcast 2 of uint8 [6016] from rank 0, others in "
                          "all-reduce 2 of float32 [272474]"));
}

// As over NCCL, where a rank starts many collectives before the first one completes.
TEST(Desync, names_the_first_collective_that_a_rank_lacks) {
  FlightDump ahead = dump_of(0, {kCopied, kReduced, kReduced, kCopied});
  for (const std::size_t i : {1U, 2U}) ahead.entries[i].outcome = CollectiveOutcome::under_way;
  FlightDump behind = dump_of(1, {kCopied});
  behind.entries[0].outcome = CollectiveOutcome::done;
  behind.entries[0].place = "train.py:88";
  EXPECT_THAT(
      describe_desync(std::vector{ahead, behind}),
      ElementsAre("rank 1 (pid 41 on node3) has not reached all-reduce 2 of float32 [272474]: its last "
                  "collective was broadcast 1 of uint8 [6016] from rank 0, done (at train.py:88)"));
  // It has left the ring of its peers.
  ahead.entries.erase(ahead.entries.begin(), ahead.entries.begin() + 2);
  EXPECT_THAT(
      describe_desync(std::vector{ahead, behind})[0],
      testing::StartsWith("rank 1 (pid 41 on node3) has not reached all-reduce 3 of float32 [272474]"));
}

TEST(Desync, ranks_that_wait_in_one_collective_may_have_started_more) {
  FlightDump ahead = dump_of(0, {kReduced, kReduced, kReduced});
  ahead.entries[1].outcome = CollectiveOutcome::under_way;
  EXPECT_THAT(
      describe_desync(std::vector{ahead, dump_of(1, {kReduced, kReduced})}),
      ElementsAre("all 2 ranks have reached all-reduce 2 of float32 [272474], but it has not completed"));
}

TEST(Desync, names_the_first_difference_and_the_ranks_of_the_minority) {
  FlightDump odd = dump_of(1, {kCopied, kCopied, kReduced});
  odd.entries[1].outcome = CollectiveOutcome::under_way;
  odd.entries[1].place = "train.py:90";
  EXPECT_THAT(
      describe_desync(
          std::vector{dump_of(0, {kCopied, kReduced, kReduced}), odd, dump_of(2, {kCopied, kReduced})}),
      ElementsAre("rank 1 (pid 41 on node3) is in broadcast 2 of uint8 [6016] from rank 0 (at train.py:90), "
                  "others in all-reduce 2 of float32 [272474]"));
  // Whatever was completed was no problem.
  std::vector<FlightDump> both = {dump_of(0, {kCopied, kReduced}), dump_of(1, {kReduced, kReduced})};
  EXPECT_THAT(
      describe_desync(both),
      ElementsAre("all 2 ranks have reached all-reduce 2 of float32 [272474], but it has not completed"));
}

TEST(Desync, names_host_and_process_group_of_a_rank) {
  FlightDump first = dump_of(0, {kReduced}), second = dump_of(3, {});
  first.group = second.group = "tensor";
  second.pid = 0;
  EXPECT_THAT(
      describe_desync(std::vector{first, second}),
      ElementsAre("rank 3 (on node3) has started no collective; its peers have reached all-reduce 1 of "
                  "float32 [272474] in group tensor"));
  second.host = "";
  EXPECT_THAT(describe_desync(std::vector{first, second})[0], testing::StartsWith("rank 3 has started no"));
}

TEST(Desync, names_the_collective_with_the_longest_wait) {
  const auto flight = [](int rank, std::vector<double> begun) {
    FlightDump made{.rank = rank, .pid = 40 + rank, .host = "n1", .entries = {}};
    for (std::size_t i = 0; i < begun.size(); ++i)
      made.entries.push_back({.number = 7 + i, .collective = kReduced, .begun_unix_s = begun[i]});
    return made;
  };
  const std::vector<FlightDump> flights = {flight(0, {10, 20, 30}), flight(1, {10.5, 27.1, 30}),
                                           flight(2, {10, 20.5})};
  EXPECT_EQ(longest_wait(flights, 1),
            "rank 1 (pid 41 on n1) reached all-reduce 8 of float32 [272474] 7.1 s after rank 0");
  EXPECT_EQ(longest_wait(flights, 10), "");
  std::vector<FlightDump> inside = {flight(0, {10, 20}), flight(1, {10, 21.5})};
  inside[0].entries[1].seconds = 9;
  inside[1].entries[1].seconds = 7.6;
  EXPECT_EQ(longest_wait(inside, 1), "all 2 ranks were in all-reduce 8 of float32 [272474] for 7.6 s");
  EXPECT_EQ(longest_wait({}, 0), "");
}

}  // namespace
}  // namespace stoker::record
