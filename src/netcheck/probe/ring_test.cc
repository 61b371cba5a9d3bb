#include "netcheck/probe/ring.h"

#include <sys/socket.h>

#include <gmock/gmock.h>

#include "base/thread.h"

namespace stoker::netcheck {
namespace {

using namespace std::chrono_literals;

// A ring with that many ranks in this process: `next` of rank r is connected to `previous` of r + 1.
std::vector<Ring> make_rings(int size) {
  std::vector<Fd> next(static_cast<std::size_t>(size));
  std::vector<Fd> previous(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    next[static_cast<std::size_t>(r)] = Fd(ends[0]);
    previous[static_cast<std::size_t>((r + 1) % size)] = Fd(ends[1]);
  }
  std::vector<Ring> rings;
  for (int r = 0; r < size; ++r) {
    const auto i = static_cast<std::size_t>(r);
    rings.emplace_back(Rank(r), WorldSize(size), std::move(next[i]), std::move(previous[i]));
  }
  return rings;
}

const KeepGoing kOn = [] { return true; };

class Collective : public ::testing::TestWithParam<std::tuple<int, Operation, std::size_t>> {};

TEST_P(Collective, gives_each_rank_what_it_should) {
  const auto [size, operation, count] = GetParam();
  std::vector<Ring> rings = make_rings(size);
  std::vector<Status> results(rings.size());
  {
    std::vector<Thread> threads;
    for (std::size_t r = 0; r < rings.size(); ++r) {
      threads.emplace_back([&, r, size = size, operation = operation, count = count](const StopToken&) {
        const Rank own(static_cast<int>(r));
        std::vector<float> values(count);
        fill_test_values(operation, own, WorldSize(size), values);
        results[r] = rings[r].run(operation, values, Deadline::after(60s), kOn);
        if (results[r].ok()) results[r] = check_result(operation, own, WorldSize(size), values);
      });
    }
  }
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.to_string();
}

// 0 and 1 elements: fewer than ranks; 300 001: more than a socket buffer, and not a multiple.
INSTANTIATE_TEST_SUITE_P(Sizes, Collective,
                         ::testing::Combine(::testing::Values(2, 3, 5), ::testing::ValuesIn(kOperations),
                                            ::testing::Values(0, 1, 7, 300001)));

TEST(Ring, a_wrong_element_is_named) {
  std::vector<float> values(10);
  fill_test_values(Operation::broadcast, Rank(0), WorldSize(2), values);
  ASSERT_TRUE(check_result(Operation::broadcast, Rank(1), WorldSize(2), values).ok());
  values[6] = 3;
  EXPECT_EQ(check_result(Operation::broadcast, Rank(1), WorldSize(2), values).message(),
            "broadcast: element 6 is 3, not 6");
}

TEST(Ring, a_neighbour_that_stands_still_is_named) {
  std::vector<Ring> rings = make_rings(3);
  std::vector<float> values(8);
  EXPECT_EQ(rings[1].run(Operation::all_reduce, values, Deadline::after(50ms), kOn).message(),
            "rank 0 sends no more data");
  std::vector<float> many(4 << 20);
  EXPECT_EQ(rings[0].run(Operation::broadcast, many, Deadline::after(200ms), kOn).message(),
            "rank 1 accepts no more data");
}

TEST(Ring, a_neighbour_that_is_gone_is_named) {
  std::vector<Ring> rings = make_rings(3);
  rings.erase(rings.begin());
  std::vector<float> values(8);
  EXPECT_EQ(rings[0].run(Operation::all_reduce, values, Deadline::after(20s), kOn).message(),
            "rank 0 is gone: it closed the connection");
}

TEST(Ring, ends_when_keep_going_is_false) {
  std::vector<Ring> rings = make_rings(2);
  std::vector<float> values(8);
  EXPECT_EQ(rings[0].run(Operation::all_reduce, values, Deadline::after(20s), [] { return false; }).code(),
            Code::cancelled);
}

TEST(Operations, have_names_that_read_back) {
  for (Operation operation : kOperations) EXPECT_EQ(*parse_operation(to_text(operation)), operation);
  EXPECT_EQ(parse_operation("gossip").status().message(), "no operation 'gossip'");
}

TEST(ShortestTime, is_what_the_slowest_link_must_carry) {
  const Link link{.bytes_per_s = 1e9, .latency_s = 0};
  EXPECT_DOUBLE_EQ(shortest_time(Operation::all_reduce, WorldSize(2), 1'000'000, link), 1e-3);
  EXPECT_DOUBLE_EQ(shortest_time(Operation::all_reduce, WorldSize(4), 1'000'000, link), 1.5e-3);
  EXPECT_DOUBLE_EQ(shortest_time(Operation::all_gather, WorldSize(4), 1'000'000, link), 0.75e-3);
  EXPECT_DOUBLE_EQ(shortest_time(Operation::broadcast, WorldSize(4), 1'000'000, link), 1e-3);
  EXPECT_DOUBLE_EQ(shortest_time(Operation::broadcast, WorldSize(4), 1'000'000, {1e9, 1e-3}), 1e-3);
  EXPECT_DOUBLE_EQ(shortest_time(Operation::all_gather, WorldSize(4), 0, {1e9, 1e-3}), 3e-3);
  EXPECT_EQ(shortest_time(Operation::all_reduce, WorldSize(1), 1'000'000, link), 0);
}

}  // namespace
}  // namespace stoker::netcheck
