#include "net/shm/exchange.h"

#include <csignal>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/port.h"
#include "net/shm/test_ranks.h"

namespace stoker::net::shm {
namespace {

using testing::HasSubstr;

// Element i of rank r: small integers, so that every summation order is exact.
std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i + 1) % 97 + static_cast<std::size_t>(rank));
  return values;
}

Status expect_sum(const std::vector<float>& found, int ranks) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t base = (i + 1) % 97, count = static_cast<std::size_t>(ranks);
    const auto sum = static_cast<float>(count * base + count * (count - 1) / 2);
    if (found[i] != sum) return internal("element {} is {}, not {}", i, found[i], sum);
  }
  return {};
}

// Sizes around every limit: zero, one, less than a cache line, the first shared sums, a chunk, several
// chunks.
constexpr std::size_t kCounts[] = {0, 1, 15, 17, 8192, 8193, 65536, 65537, 131'072, 131'073, 200'003};

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Exchange, Ranks, testing::Values(1, 2, 3, 4, 7));

TEST_P(Ranks, all_reduce_gives_every_rank_the_sum) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    for (const std::size_t count : kCounts) {
      std::vector<float> values = values_of(exchange.position().rank.value, count);
      STOKER_RETURN_IF_ERROR(exchange.all_reduce(bytes_of(values), kFloatSum));
      STOKER_RETURN_IF_ERROR(expect_sum(values, exchange.position().size.value));
    }
    return {};
  }));
}

TEST_P(Ranks, broadcast_gives_every_rank_the_data_of_the_root) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    for (const std::size_t count : kCounts) {
      for (int root = 0; root < exchange.position().size.value; ++root) {
        std::vector<float> values = values_of(exchange.position().rank.value, count);
        STOKER_RETURN_IF_ERROR(exchange.broadcast(bytes_of(values), Element::f32, Rank(root)));
        if (values != values_of(root, count)) return internal("not rank {}'s {} values", root, count);
      }
    }
    return {};
  }));
}

TEST_P(Ranks, all_gather_gives_every_rank_all_parts) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    const int ranks = exchange.position().size.value;
    for (const std::size_t count : kCounts) {
      std::vector<float> own = values_of(exchange.position().rank.value, count);
      std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks), std::vector<float>(count));
      std::vector<std::span<std::byte>> into;
      for (auto& values : all) into.push_back(bytes_of(values));
      STOKER_RETURN_IF_ERROR(exchange.all_gather(bytes_of(own), Element::f32, into));
      for (int rank = 0; rank < ranks; ++rank) {
        if (all[static_cast<std::size_t>(rank)] != values_of(rank, count)) return internal("rank {}", rank);
      }
    }
    return {};
  }));
}

TEST_P(Ranks, reduce_scatter_gives_each_rank_its_part_of_the_sum) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    const auto ranks = static_cast<std::size_t>(exchange.position().size.value);
    for (const std::size_t count : kCounts) {
      // Each rank sends the same values to all ranks, so all parts of the sum are equal.
      std::vector<float> given = values_of(exchange.position().rank.value, count), own(count);
      const std::vector<std::span<const std::byte>> parts(ranks, std::as_bytes(std::span(given)));
      STOKER_RETURN_IF_ERROR(exchange.reduce_scatter(parts, bytes_of(own), kFloatSum));
      STOKER_RETURN_IF_ERROR(expect_sum(own, exchange.position().size.value));
    }
    return {};
  }));
}

TEST_P(Ranks, reduce_gives_the_sum_to_the_root_alone) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    const int rank = exchange.position().rank.value;
    const int root = exchange.position().size.value - 1;
    for (const std::size_t count : kCounts) {
      std::vector<float> values = values_of(rank, count);
      STOKER_RETURN_IF_ERROR(exchange.reduce(bytes_of(values), kFloatSum, Rank(root)));
      if (rank == root) {
        STOKER_RETURN_IF_ERROR(expect_sum(values, root + 1));
      } else if (values != values_of(rank, count)) {
        return internal("the values of rank {} changed", rank);
      }
    }
    return {};
  }));
}

// Consecutive chunks reuse buffers: different collectives in a row must not corrupt each other.
TEST_P(Ranks, mixed_collectives_in_a_row_do_not_disturb_each_other) {
  expect_ok(run_on_threads(GetParam(), [](Exchange& exchange) -> Status {
    const int ranks = exchange.position().size.value;
    for (int round = 0; round < 300; ++round) {
      std::vector<float> sums =
          values_of(exchange.position().rank.value, 100 + static_cast<std::size_t>(round) * 37);
      std::vector<float> copies =
          values_of(exchange.position().rank.value, 1 + static_cast<std::size_t>(round));
      STOKER_RETURN_IF_ERROR(exchange.broadcast(bytes_of(copies), Element::f32, Rank(round % ranks)));
      STOKER_RETURN_IF_ERROR(exchange.all_reduce(bytes_of(sums), kFloatSum));
      if (round % 5 == 0) STOKER_RETURN_IF_ERROR(exchange.barrier());
      STOKER_RETURN_IF_ERROR(expect_sum(sums, ranks));
      if (copies != values_of(round % ranks, copies.size())) return internal("round {}", round);
    }
    return {};
  }));
}

TEST(Exchange, all_ranks_get_the_same_bits_summed_in_rank_order) {
  constexpr std::size_t kCount = 100'000;
  std::vector<std::vector<float>> sums(5, std::vector<float>(kCount));
  const auto value = [](std::size_t rank, std::size_t i) {
    return 1.0F / static_cast<float>(1 + (i * 7919 + rank * 104'729) % 1'000'003);
  };
  expect_ok(run_on_threads(5, [&](Exchange& exchange) {
    const auto rank = static_cast<std::size_t>(exchange.position().rank.value);
    for (std::size_t i = 0; i < kCount; ++i) sums[rank][i] = value(rank, i);
    return exchange.all_reduce(bytes_of(sums[rank]), kFloatSum);
  }));
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = value(0, i);
    for (std::size_t rank = 1; rank < 5; ++rank) sum += value(rank, i);
    for (const auto& found : sums) ASSERT_EQ(found[i], sum) << i;
  }
}

TEST(Exchange, names_the_mismatched_collectives_of_two_ranks) {
  const auto statuses = run_on_threads(2, [](Exchange& exchange) -> Status {
    STOKER_RETURN_IF_ERROR(exchange.barrier());
    std::vector<float> values(exchange.position().rank.value == 0 ? 10 : 20);
    return exchange.all_reduce(bytes_of(values), kFloatSum);
  });
  EXPECT_EQ(statuses[0].code(), Code::invalid);
  EXPECT_EQ(
      statuses[0].message(),
      format("rank 1 (pid {} on {}) is in all-reduce 2 of 80 B of float32, rank 0 in all-reduce 2 of 40 B "
             "of float32",
             ::getpid(), host_name()));
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 1 in all-reduce 2 of 80 B"));
}

TEST(Exchange, names_mismatched_operation_root_and_reduction) {
  const auto statuses = run_on_threads(2, [](Exchange& exchange) -> Status {
    std::vector<float> values(10);
    if (exchange.position().rank.value == 0) {
      return exchange.all_reduce(bytes_of(values), {Element::f32, Reduction::max});
    }
    STOKER_RETURN_IF_ERROR(exchange.broadcast(bytes_of(values), Element::f32, Rank(1)));
    return exchange.barrier();
  });
  EXPECT_THAT(std::string(statuses[0].message()),
              HasSubstr(") is in broadcast 1 of 40 B of float32, root 1, rank 0 in all-reduce 1 of 40 B of "
                        "float32, greatest"));
  EXPECT_FALSE(statuses[1].ok());
}

TEST(Exchange, names_the_rank_that_left) {
  const auto statuses = run_on_threads(3, [](Exchange& exchange) -> Status {
    if (exchange.position().rank.value == 2) return {};
    return exchange.barrier();
  });
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
  EXPECT_EQ(statuses[0].message(),
            format("rank 2 left (pid {} on {}; barrier 1 waited for it)", ::getpid(), host_name()));
}

TEST(Exchange, a_rank_may_leave_after_it_contributed_its_part) {
  expect_ok(run_on_threads(2, [](Exchange& exchange) -> Status {
    std::vector<float> values(300'000, exchange.position().rank.value == 0 ? 5.0F : 0.0F);
    STOKER_RETURN_IF_ERROR(exchange.barrier());
    STOKER_RETURN_IF_ERROR(exchange.broadcast(bytes_of(values), Element::f32, Rank(0)));
    return values.back() == 5 ? Status() : internal("{}", values.back());
  }));
}

TEST(Exchange, names_the_unresponsive_rank) {
  std::atomic<bool> rank_0_is_done{false}, rank_1_has_joined{false};
  const auto statuses = run_on_threads(2,
                                       [&](Exchange& exchange) -> Status {
                                         if (exchange.position().rank.value == 0) {
                                           while (!rank_1_has_joined) std::this_thread::yield();
                                           const Status status = exchange.barrier();
                                           rank_0_is_done = true;
                                           return status;
                                         }
                                         rank_1_has_joined = true;
                                         while (!rank_0_is_done) std::this_thread::yield();
                                         return {};
                                       },
                                       {.call_timeout = std::chrono::milliseconds(30)});
  EXPECT_EQ(statuses[0].code(), Code::timeout);
  EXPECT_EQ(statuses[0].message(),
            format("rank 1 did not respond within 30 ms (pid {} on {}; barrier 1 waited "
                   "for it)",
                   ::getpid(), host_name()));
}

TEST(Exchange, reports_why_a_rank_abandoned_its_peers) {
  const auto statuses = run_on_threads(3, [](Exchange& exchange) -> Status {
    if (exchange.position().rank.value == 1) {
      exchange.abandon("no gradient for 'fc.bias'");
      return {};
    }
    return exchange.barrier();
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(statuses[static_cast<std::size_t>(rank)].code(), Code::invalid);
    EXPECT_EQ(statuses[static_cast<std::size_t>(rank)].message(), "rank 1: no gradient for 'fc.bias'");
  }
}

TEST(Exchange, a_rank_that_is_abandoned_by_several_threads_gives_the_first_reason) {
  const auto statuses = run_on_threads(2, [](Exchange& exchange) -> Status {
    if (exchange.position().rank.value == 0) return exchange.barrier();
    exchange.abandon("the first");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { exchange.abandon("another"); });
    for (std::thread& thread : threads) thread.join();
    return {};
  });
  EXPECT_EQ(statuses[0].message(), "rank 1: the first");
}

TEST(Exchange, after_an_error_every_call_fails_the_same_way) {
  const auto statuses = run_on_threads(2, [](Exchange& exchange) -> Status {
    if (exchange.position().rank.value == 1) return {};
    const Status first = exchange.barrier();
    const Status second = exchange.barrier();
    return first.message() == second.message() ? first : internal("another error: {}", second.message());
  });
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
}

// Rank 1 in a child process, rank 0 here.
struct Pair {
  explicit Pair(const std::function<void(Exchange&)>& body, ExchangeOptions options = {}) {
    auto opened = RegionServer::open();
    EXPECT_TRUE(opened.ok());
    other = rank_process(opened->address(), {Rank(1), WorldSize(2)}, body);
    auto made = join_group(&*opened, "", {Rank(0), WorldSize(2)}, options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    exchange = std::move(*made);
  }
  ~Pair() {
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  }
  std::unique_ptr<Exchange> exchange;
  pid_t other = 0;
};

TEST(Exchange, names_the_rank_whose_process_is_killed) {
  Pair pair([](Exchange& exchange) {
    (void)exchange.barrier();
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(pair.exchange->barrier().ok());
  const Status status = pair.exchange->barrier();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_EQ(status.message(),
            format("rank 1 left (pid {} on {} has died; barrier 2 waited for it)", pair.other, host_name()));
}

TEST(Exchange, reports_late_ranks_and_keeps_waiting) {
  std::atomic<bool> was_reported{false};
  std::string report;
  ExchangeOptions options{.straggler_after = std::chrono::milliseconds(20)};
  options.on_straggler = [&](std::string_view text) {
    report = text;
    was_reported = true;
  };
  expect_ok(run_on_threads(
      2,
      [&](Exchange& exchange) -> Status {
        STOKER_RETURN_IF_ERROR(exchange.barrier());
        while (exchange.position().rank.value == 1 && !was_reported) std::this_thread::yield();
        return exchange.barrier();
      },
      options));
  EXPECT_THAT(report,
              testing::MatchesRegex("rank 0 has waited for [0-9]+ ms in barrier 2: rank 1 \\(pid [0-9]+ on "
                                    ".*, (runs|sleeps|waits for storage)\\) was last in barrier 1"));
}

TEST(Exchange, reports_a_call_that_the_late_rank_made) {
  std::atomic<int> wrong{0};
  ExchangeOptions options{.straggler_after = Duration::zero()};
  options.on_straggler = [&](std::string_view text) {
    for (std::string_view late : split(text.substr(text.find(": ")), ';')) {
      const bool is_known = late.ends_with("has not entered any collective yet") ||
                            late.ends_with(" of 8 B of uint8, root 1") ||
                            late.find("was last in barrier ") != late.npos;
      if (!is_known) wrong += 1;
    }
  };
  expect_ok(run_on_threads(
      3,
      [](Exchange& exchange) -> Status {
        std::vector<std::uint8_t> bytes(8);
        for (int i = 0; i < 300; ++i) {
          if (i % 3 == exchange.position().rank.value) std::this_thread::yield();
          STOKER_RETURN_IF_ERROR(i % 2 == 0 ? exchange.barrier()
                                            : exchange.broadcast(bytes_of(bytes), Element::u8, Rank(1)));
        }
        return {};
      },
      options));
  EXPECT_EQ(wrong, 0);
}

TEST(Exchange, names_the_rank_that_is_stopped) {
  Pair pair(
      [](Exchange& exchange) {
        (void)exchange.barrier();
        ::raise(SIGSTOP);
      },
      {.stopped_timeout = std::chrono::milliseconds(50)});
  EXPECT_TRUE(pair.exchange->barrier().ok());
  const Status status = pair.exchange->barrier();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(format("rank 1 is stopped (pid {} on {}: by a signal, for ", pair.other, host_name())));
}

TEST(Exchange, between_processes_data_are_exact_after_many_chunks) {
  Pair pair([](Exchange& exchange) {
    std::vector<float> values = values_of(1, 1'000'003);
    (void)exchange.all_reduce(bytes_of(values), kFloatSum);
    (void)exchange.barrier();
  });
  std::vector<float> values = values_of(0, 1'000'003);
  ASSERT_TRUE(pair.exchange->all_reduce(bytes_of(values), kFloatSum).ok());
  EXPECT_TRUE(expect_sum(values, 2).ok());
  EXPECT_TRUE(pair.exchange->barrier().ok());
  EXPECT_EQ(pair.exchange->calls(), 2U);
}

}  // namespace
}  // namespace stoker::net::shm
