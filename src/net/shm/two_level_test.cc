#include "net/shm/two_level.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread.h"
#include "net/shm/test_ranks.h"

namespace stoker::net::shm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A network of threads: all hosts exchange bytes and get them in host order.
class Table {
 public:
  explicit Table(std::size_t hosts) : hosts_(hosts) {}

  Result<std::vector<std::vector<std::byte>>> exchange(std::size_t host, std::uint64_t number,
                                                       std::span<const std::byte> own) {
    const MutexLock lock(mutex_);
    auto& parts = parts_[number];
    parts.resize(hosts_);
    parts[host].assign(own.begin(), own.end());
    arrived_[number] += 1;
    changed_.notify_all();
    while (arrived_[number] < hosts_) {
      if (!left_.empty()) return unavailable("{}", left_);
      if (!changed_.wait(mutex_, Deadline::after(30s))) return timeout("no peer arrived");
    }
    return parts;
  }
  void leave(std::size_t host, std::string_view why) {
    const MutexLock lock(mutex_);
    if (left_.empty()) left_ = format("host {} left: {}", host, why);
    changed_.notify_all();
  }

 private:
  const std::size_t hosts_;
  Mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, std::vector<std::vector<std::byte>>> parts_ STOKER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::size_t> arrived_ STOKER_GUARDED_BY(mutex_);
  std::string left_ STOKER_GUARDED_BY(mutex_);
};

class TestNetwork final : public InterNode {
 public:
  TestNetwork(Table& table, std::size_t host) : table_(table), host_(host) {}

  Status begin_all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) override {
    begun_.push_back({data, arithmetic});
    return {};
  }
  Status finish_all_reduce() override {
    const auto [data, arithmetic] = begun_.front();
    begun_.pop_front();
    STOKER_ASSIGN_OR_RETURN(all, exchange(data));
    std::vector<const std::byte*> from;
    for (const auto& one : all) from.push_back(one.data());
    fold(arithmetic, data.data(), from, data.size());
    return {};
  }
  Status broadcast(std::span<std::byte> data, std::size_t host) override {
    STOKER_ASSIGN_OR_RETURN(all, exchange(data));
    std::ranges::copy(all[host], data.begin());
    return {};
  }
  Status all_gather(std::span<const std::byte> own, std::span<std::byte> into) override {
    STOKER_ASSIGN_OR_RETURN(all, exchange(own));
    auto at = into.begin();
    for (const auto& one : all) at = std::ranges::copy(one, at).out;
    return {};
  }
  Status barrier() override { return exchange({}).status(); }
  void leave(std::string_view why) override { table_.leave(host_, why); }
  void set_straggler_after(Duration /*duration*/) override {}
  void cancel() override {}

 private:
  Result<std::vector<std::vector<std::byte>>> exchange(std::span<const std::byte> own) {
    return table_.exchange(host_, ++number_, own);
  }
  Table& table_;
  const std::size_t host_;
  std::uint64_t number_ = 0;
  std::deque<std::pair<std::span<std::byte>, ReduceSpec>> begun_;
};

// Runs `body` on one rank per place; ranks with equal places share a host. Returns the statuses by rank.
std::vector<Status> on_hosts(const std::vector<std::string>& places,
                             const std::function<Status(TwoLevel&)>& body,
                             const std::function<void(Rank, CommunicationLevel)>& on_level = {}) {
  const Hosts hosts = Hosts::group_by_domain(places);
  Table table(hosts.count());
  std::vector<RegionServer> servers;
  for (std::size_t host = 0; host < hosts.count(); ++host)
    servers.push_back(std::move(*RegionServer::open()));
  std::vector<std::string> addresses;
  for (const RegionServer& host : servers) addresses.push_back(host.address());
  std::vector<Status> statuses(places.size());
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < places.size(); ++number) {
    threads.emplace_back([&, number] {
      const Rank rank(static_cast<int>(number));
      const std::size_t host = hosts.host_of(rank);
      TwoLevelParts parts{hosts, rank, nullptr, nullptr};
      if (hosts.ranks_of(host).size() > 1) {
        ExchangeOptions options;
        options.global_ranks = hosts.ranks_of(host);
        auto inside = join_group(hosts.is_leader(rank) ? &servers[host] : nullptr, addresses[host],
                                 hosts.position_of(rank), options);
        if (!inside.ok()) {
          statuses[number] = inside.status();
          return;
        }
        parts.intra_node = std::move(*inside);
      }
      if (hosts.is_leader(rank)) parts.inter_node = std::make_unique<TestNetwork>(table, host);
      if (on_level) parts.on_level = [&, rank](CommunicationLevel level) { on_level(rank, level); };
      TwoLevel ranks(std::move(parts));
      statuses[number] = body(ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

template <typename T>
Status expect(const std::vector<T>& found, const std::vector<T>& wanted) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted[i]) return internal("element {} is {}, not {}", i, found[i], wanted[i]);
  }
  return {};
}

TEST(Hosts, are_numbered_by_their_first_ranks) {
  const std::vector<std::string> places = {"b", "a", "b", "", "", "a"};
  const Hosts hosts = Hosts::group_by_domain(places);
  EXPECT_EQ(hosts.to_text(), "0 1 0 2 3 1");
  EXPECT_EQ(hosts.count(), 4u);
  EXPECT_EQ(hosts.max_ranks_per_host(), 2u);
  EXPECT_THAT(hosts.leaders(), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(hosts.ranks_of(1), ElementsAre(1, 5));
  EXPECT_EQ(hosts.position_of(Rank(5)).rank.value, 1);
  EXPECT_EQ(hosts.position_of(Rank(5)).size.value, 2);
  EXPECT_TRUE(hosts.is_leader(Rank(1)));
  EXPECT_FALSE(hosts.is_leader(Rank(2)));
  EXPECT_EQ(Hosts::parse(hosts.to_text())->to_text(), hosts.to_text());
}

TEST(Hosts, refuses_invalid_text) {
  for (const char* text : {"", "1", "0 2", "0 x", "0  1", "-1"}) {
    EXPECT_EQ(Hosts::parse(text).status().to_string(), format("hosts of the ranks: '{}'", text));
  }
}

using Places = std::vector<std::string>;
class OnHosts : public testing::TestWithParam<Places> {};
INSTANTIATE_TEST_SUITE_P(TwoLevel, OnHosts,
                         testing::Values(Places{"a", "a", "b", "b"}, Places{"a", "b", "a", "b", "a"},
                                         Places{"a", "b", "c"}, Places{"a", "a", "a", "b"},
                                         Places{"a", "a"}));

TEST_P(OnHosts, sums_over_all_ranks_for_any_size) {
  expect_ok(on_hosts(GetParam(), [](TwoLevel& ranks) -> Status {
    const int world = ranks.position().size.value;
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{3'000'001}}) {
      std::vector<float> values(count), wanted(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(i % 97 + static_cast<std::size_t>(ranks.position().rank.value));
        wanted[i] = static_cast<float>(world) * static_cast<float>(i % 97) +
                    static_cast<float>(world * (world - 1) / 2);
      }
      STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(values), kFloatSum));
      STOKER_RETURN_IF_ERROR(expect(values, wanted));
    }
    return {};
  }));
}

TEST_P(OnHosts, average_and_maximum_are_over_all_ranks) {
  expect_ok(on_hosts(GetParam(), [](TwoLevel& ranks) -> Status {
    const int world = ranks.position().size.value;
    const std::int64_t own = 10 * ranks.position().rank.value;
    std::vector<double> mean = {static_cast<double>(own)};
    STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(mean), {Element::f64, Reduction::average}));
    STOKER_RETURN_IF_ERROR(expect(mean, {5.0 * (world - 1)}));
    std::vector<std::int64_t> greatest = {own, -own};
    STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(greatest), {Element::i64, Reduction::max}));
    return expect(greatest, {std::int64_t{10} * (world - 1), 0});
  }));
}

TEST_P(OnHosts, every_rank_receives_a_broadcast_from_any_rank) {
  expect_ok(on_hosts(GetParam(), [](TwoLevel& ranks) -> Status {
    for (int root = 0; root < ranks.position().size.value; ++root) {
      std::vector<int> values(100'000, ranks.position().rank.value);
      STOKER_RETURN_IF_ERROR(ranks.broadcast(bytes_of(values), Element::i32, Rank(root)));
      STOKER_RETURN_IF_ERROR(expect(values, std::vector<int>(values.size(), root)));
    }
    return ranks.broadcast({}, Element::i32, Rank(0));
  }));
}

TEST_P(OnHosts, gathers_and_scatters_in_rank_order) {
  expect_ok(on_hosts(GetParam(), [](TwoLevel& ranks) -> Status {
    const auto world = static_cast<std::size_t>(ranks.position().size.value);
    const int rank = ranks.position().rank.value;
    std::vector<int> own(1000, rank), all(1000 * world);
    std::vector<std::span<std::byte>> into;
    for (std::size_t r = 0; r < world; ++r) into.push_back(bytes_of(all).subspan(r * 4000, 4000));
    STOKER_RETURN_IF_ERROR(ranks.all_gather(bytes_of(own), Element::i32, into));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] != static_cast<int>(i / 1000)) return internal("{} at {}", all[i], i);
    }
    STOKER_RETURN_IF_ERROR(ranks.all_gather({}, Element::i32, std::vector<std::span<std::byte>>(world)));
    std::vector<std::span<const std::byte>> parts(into.begin(), into.end());
    STOKER_RETURN_IF_ERROR(ranks.reduce_scatter(parts, bytes_of(own), {Element::i32, Reduction::sum}));
    STOKER_RETURN_IF_ERROR(expect(own, std::vector<int>(1000, rank * static_cast<int>(world))));
    std::vector<int> total = {1};
    STOKER_RETURN_IF_ERROR(ranks.reduce(bytes_of(total), {Element::i32, Reduction::sum}, Rank(0)));
    if (rank == 0) STOKER_RETURN_IF_ERROR(expect(total, {static_cast<int>(world)}));
    return ranks.barrier();
  }));
}

// (1 + 2^-24) + (2^-24 + 2^-24) differs from the sum from left to right: hosts are summed separately.
TEST(TwoLevel, sums_ranks_within_hosts_in_order_then_across_hosts) {
  constexpr float kTiny = 0x1p-24F;
  std::vector<float> found(4);
  expect_ok(on_hosts({"a", "a", "b", "b"}, [&](TwoLevel& ranks) -> Status {
    const auto rank = static_cast<std::size_t>(ranks.position().rank.value);
    std::vector<float> value = {rank == 0 ? 1.0F : kTiny};
    STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(value), kFloatSum));
    found[rank] = value[0];
    return {};
  }));
  const float by_hosts = (1.0F + kTiny) + (kTiny + kTiny);
  ASSERT_NE(by_hosts, ((1.0F + kTiny) + kTiny) + kTiny);
  EXPECT_THAT(found, ElementsAre(by_hosts, by_hosts, by_hosts, by_hosts));
}

TEST(TwoLevel, reports_the_level_of_a_call) {
  std::mutex mutex;
  std::map<int, std::string> levels;
  expect_ok(on_hosts(
      {"a", "a", "b"},
      [](TwoLevel& ranks) {
        std::vector<float> value(1);
        return ranks.all_reduce(bytes_of(value), kFloatSum);
      },
      [&](Rank rank, CommunicationLevel level) {
        const std::lock_guard lock(mutex);
        levels[rank.value] += level == CommunicationLevel::intra_node ? 'w' : 'b';
      }));
  EXPECT_EQ(levels[0], "wbbw");
  EXPECT_EQ(levels[1], "ww");
  EXPECT_EQ(levels[2], "bb");
}

TEST(TwoLevel, a_rank_that_leaves_is_named_on_every_host) {
  const auto statuses = on_hosts({"a", "a", "b", "b"}, [](TwoLevel& ranks) -> Status {
    if (ranks.position().rank.value == 3) return {};
    std::vector<float> value(1);
    STOKER_RETURN_IF_ERROR(ranks.all_reduce(bytes_of(value), kFloatSum));
    return {};
  });
  EXPECT_TRUE(statuses[3].ok());
  EXPECT_THAT(statuses[2].to_string(), StartsWith("within the host: rank 3 left ("));
  EXPECT_THAT(statuses[0].to_string(),
              StartsWith("between hosts: host 1 left: within the host: rank 3 left ("));
  EXPECT_THAT(
      statuses[1].to_string(),
      StartsWith("within the host: rank 0: between hosts: host 1 left: within the host: rank 3 left ("));
}

TEST(TwoLevel, the_reason_of_a_rank_that_abandons_reaches_every_host) {
  const auto statuses = on_hosts({"a", "b", "a", "b"}, [](TwoLevel& ranks) -> Status {
    if (ranks.position().rank.value == 3) {
      ranks.abandon("out of images");
      return {};
    }
    STOKER_RETURN_IF_ERROR(ranks.barrier());
    return ranks.barrier();
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Status& status = statuses[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.to_string(), HasSubstr("rank 3: out of images"));
  }
}

TEST(TwoLevel, fails_the_same_way_from_then_on) {
  const auto statuses = on_hosts({"a", "b", "a"}, [](TwoLevel& ranks) -> Status {
    if (ranks.position().rank.value == 2) return {};
    const Status first = ranks.barrier();
    const Status second = ranks.barrier();
    return first.to_string() == second.to_string() ? first : internal("another: {}", second.to_string());
  });
  EXPECT_THAT(statuses[0].to_string(), StartsWith("within the host: rank 2 left ("));
  EXPECT_THAT(statuses[1].to_string(), HasSubstr("rank 2 left ("));
}

}  // namespace
}  // namespace stoker::net::shm
