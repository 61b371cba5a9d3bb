#include "stoker/process_group.h"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/trace/desync.h"
#include "stoker/exceptions.h"
#include "train/comm/network.h"
#include "train/comm/test_ranks.h"

namespace stoker::train {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(ProcessGroup, sums_over_all_ranks) {
  const auto statuses = on_ranks(3, [](ProcessGroup& group) -> Status {
    double values[] = {1.0 + group.rank().value, 10};
    STOKER_RETURN_IF_ERROR(group.all_reduce_sum(values));
    return values[0] == 6 && values[1] == 30 ? Status() : internal("{} {}", values[0], values[1]);
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ProcessGroup, broadcasts_from_rank_0_and_meters_traffic) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor tensor = at::full({1000}, group.rank().value == 0 ? 7.0 : 1.0, at::kFloat);
    STOKER_RETURN_IF_ERROR(group.broadcast_from_rank0(tensor));
    STOKER_RETURN_IF_ERROR(group.barrier());
    const Traffic traffic = group.traffic();
    if (traffic.calls != 2 || traffic.bytes != 4000 || traffic.in_flight_s <= 0)
      return internal("metered wrongly");
    return tensor.min().item<float>() == 7 ? Status() : internal("not rank 0's");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ProcessGroup, on_one_host_uses_shared_memory_by_default) {
  for (const Transport asked : {Transport::automatic, Transport::shared_memory, Transport::gloo}) {
    const Transport expected = asked == Transport::gloo ? Transport::gloo : Transport::shared_memory;
    const auto statuses = on_ranks(
        3,
        [expected](ProcessGroup& group) -> Status {
          double values[] = {1};
          STOKER_RETURN_IF_ERROR(group.all_reduce_sum(values));
          return group.transport() == expected && values[0] == 3 ? Status() : internal("another transport");
        },
        asked);
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(ProcessGroup, on_several_hosts_uses_gloo_or_names_the_remote_rank) {
  for (const Transport asked : {Transport::automatic, Transport::shared_memory}) {
    const std::uint16_t port = free_port();
    std::vector<Status> statuses(2);
    const auto rank = [&](int number) {
      RendezvousOptions here = rendezvous(number, 2, port);
      here.transport = asked;
      here.place = format("node{}", number);
      auto group = ProcessGroup::connect(here);
      statuses[static_cast<std::size_t>(number)] = group.status();
      if (!group.ok()) return;
      EXPECT_EQ((*group)->transport(), Transport::gloo);
      EXPECT_TRUE((*group)->barrier().ok());
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
    for (int number = 0; number < 2; ++number) {
      const Status& status = statuses[static_cast<std::size_t>(number)];
      if (asked == Transport::automatic) {
        EXPECT_TRUE(status.ok()) << status.to_string();
      } else {
        EXPECT_EQ(status.to_string(),
                  format("rank {}: rank 1 cannot share memory with rank 0 (train.backend: shm)\n  try: "
                         "train.backend: auto",
                         number));
      }
    }
  }
}

// Threads of this process that act as ranks of several hosts. Returns their statuses by rank.
std::vector<Status> on_hosts(const std::vector<std::string>& places,
                             const std::function<Status(ProcessGroup&)>& body,
                             const std::function<void(RendezvousOptions&)>& change = {}) {
  const std::uint16_t port = free_port();
  std::vector<Status> statuses(places.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    threads.emplace_back([&, rank] {
      RendezvousOptions here = rendezvous(static_cast<int>(rank), static_cast<int>(places.size()), port);
      here.place = places[rank];
      if (change) change(here);
      auto group = ProcessGroup::connect(here);
      statuses[rank] = group.ok() ? body(**group) : group.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TEST(ProcessGroup, on_hosts_with_several_ranks_uses_two_levels) {
  for (const std::vector<std::string>& places :
       {std::vector<std::string>{"a", "a", "b", "b"}, {"a", "b", "a"}, {"a", "b", "c", "b", "b"}}) {
    const auto statuses = on_hosts(places, [](ProcessGroup& group) -> Status {
      if (group.transport() != Transport::two_level) return internal("another transport");
      const int world = group.world_size().value;
      double values[] = {1.0 + group.rank().value};
      STOKER_RETURN_IF_ERROR(group.all_reduce_sum(values));
      if (values[0] != world * (world + 1) / 2) return internal("summed {}", values[0]);
      // Larger than the chunks in flight.
      const at::Tensor large = at::full({3'000'000}, 1.0 + group.rank().value, at::kFloat);
      STOKER_RETURN_IF_ERROR(group.all_reduce_sum(large));
      if (large.min().item<double>() != values[0] || large.max().item<double>() != values[0])
        return internal("summed large ones wrongly");
      const at::Tensor copied = at::full({100'000}, 1.0 + group.rank().value, at::kFloat);
      STOKER_RETURN_IF_ERROR(group.broadcast_from_rank0(copied));
      if (copied.max().item<float>() != 1) return internal("not rank 0's");
      STOKER_ASSIGN_OR_RETURN(
          texts, group.all_gather(std::string(static_cast<std::size_t>(group.rank().value), 'x')));
      for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        if (texts[rank].size() != rank) return internal("'{}' of rank {}", texts[rank], rank);
      }
      return group.barrier();
    });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(ProcessGroup, on_several_hosts_names_the_rank_that_left) {
  const auto statuses = on_hosts({"a", "a", "b", "b"}, [](ProcessGroup& group) -> Status {
    if (group.rank().value == 3) return {};
    double value[] = {1};
    STOKER_RETURN_IF_ERROR(group.all_reduce_sum(value));
    return group.all_reduce_sum(value);
  });
  EXPECT_THAT(std::string(statuses[2].message()),
              testing::StartsWith("rank 2: summing over ranks: within the host: rank 3 left ("));
  EXPECT_THAT(std::string(statuses[0].message()),
              testing::StartsWith(
                  "rank 0: summing over ranks: between hosts: rank 2: within the host: rank 3 left ("));
  EXPECT_THAT(std::string(statuses[1].message()),
              testing::StartsWith("rank 1: summing over ranks: within the host: rank 0: between hosts: rank "
                                  "2: within the host: rank 3 left ("));
}

TEST(ProcessGroup, on_several_hosts_reports_why_a_rank_aborted) {
  const auto statuses = on_hosts({"a", "b", "a", "b"}, [](ProcessGroup& group) -> Status {
    if (group.rank().value == 3) {
      group.abandon("out of images");
      return {};
    }
    STOKER_RETURN_IF_ERROR(group.barrier());
    return group.barrier();
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(std::string(statuses[static_cast<std::size_t>(rank)].message()),
                HasSubstr("rank 3: out of images"));
  }
}

TEST(ProcessGroup, on_several_hosts_reports_the_level_a_call_waits_at) {
  TempDirectory box;
  std::mutex mutex;
  std::vector<std::string> late;
  std::atomic<int> reports = 0;
  const auto statuses = on_hosts(
      {"a", "a", "b", "b"},
      [&](ProcessGroup& group) -> Status {
        // Limits of a training with fast steps.
        for (int i = 0; i < 5; ++i) group.record_step_time(0.001);
        if (group.rank().value == 3) {
          while (reports < 3) RealClock().sleep(std::chrono::milliseconds(10));
          const record::FlightDump flights[] = {*record::read_flight_dump(box / "0"),
                                                *record::read_flight_dump(box / "1"),
                                                *record::read_flight_dump(box / "2")};
          EXPECT_EQ(flights[0].entries.back().outcome, record::CollectiveOutcome::inter_node);
          EXPECT_EQ(flights[1].entries.back().outcome, record::CollectiveOutcome::intra_node);
          EXPECT_EQ(flights[2].entries.back().outcome, record::CollectiveOutcome::intra_node);
        }
        return group.barrier();
      },
      [&](RendezvousOptions& here) {
        here.flight = box / std::to_string(here.rank.value);
        here.on_straggler = [&](std::string_view text) {
          const std::lock_guard lock(mutex);
          late.emplace_back(text);
          reports += 1;
        };
      });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_THAT(late,
              testing::UnorderedElementsAre(
                  MatchesRegex("rank 0 has waited for [0-9.]+ s between hosts: rank 2, the first of its "
                               "host, has not joined"),
                  MatchesRegex("rank 1 has waited for [0-9.]+ s in barrier .*: rank 0 \\(pid .*"),
                  MatchesRegex("rank 2 has waited for [0-9.]+ s in barrier .*: rank 3 \\(pid .*")));
}

TEST(ProcessGroup, over_gloo_names_the_rank_that_left) {
  const auto statuses = on_ranks(
      2,
      [](ProcessGroup& group) -> Status {
        if (group.rank().value == 1) return {};
        double value[] = {1};
        return group.all_reduce_sum(value);
      },
      Transport::gloo);
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 0: summing over ranks: rank 1 left ("));
}

TEST(ProcessGroup, gathers_texts_of_different_length) {
  for (const Transport transport : {Transport::automatic, Transport::gloo}) {
    const auto statuses = on_ranks(
        3,
        [](ProcessGroup& group) -> Status {
          STOKER_ASSIGN_OR_RETURN(
              texts, group.all_gather(std::string(static_cast<std::size_t>(group.rank().value), 'x')));
          if (texts != std::vector<std::string>{"", "x", "xx"}) return internal("other texts");
          STOKER_ASSIGN_OR_RETURN(nothing, group.all_gather(""));
          return nothing == std::vector<std::string>(3) ? Status() : internal("something");
        },
        transport);
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(ProcessGroup, records_its_collectives_in_a_file) {
  TempDirectory box;
  const std::uint16_t port = free_port();
  const auto rank = [&](int number) {
    RendezvousOptions here = rendezvous(number, 2, port);
    here.flight = box / std::to_string(number);
    auto group = ProcessGroup::connect(here);
    ASSERT_TRUE(group.ok()) << group.status().to_string();
    EXPECT_TRUE((*group)->broadcast_from_rank0(at::full({3, 4}, 1.0, at::kFloat)).ok());
    if (number == 0) {
      EXPECT_FALSE((*group)->barrier().ok());  // rank 1 leaves
    }
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  const record::FlightDump flights[] = {*record::read_flight_dump(box / "0"),
                                        *record::read_flight_dump(box / "1")};
  ASSERT_EQ(flights[0].entries.size(), 2U);
  EXPECT_EQ(flights[0].entries[0].describe(), "broadcast 1 of float32 [3, 4] from rank 0");
  EXPECT_EQ(flights[0].entries[0].outcome, record::CollectiveOutcome::done);
  EXPECT_EQ(flights[0].entries[1].outcome, record::CollectiveOutcome::failed);
  const auto lines = record::describe_desync(flights);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(
      lines[0],
      HasSubstr(") has not reached barrier 2: its last collective was broadcast 1 of float32 [3, 4] from "
                "rank 0, done"));
}

TEST(ProcessGroup, reports_why_a_rank_aborted) {
  for (const Transport transport : {Transport::automatic, Transport::gloo}) {
    const auto statuses = on_ranks(
        2,
        [](ProcessGroup& group) -> Status {
          if (group.rank().value == 1) {
            group.abandon("out of images");
            return {};
          }
          return group.barrier();
        },
        transport);
    EXPECT_EQ(statuses[0].message(), "rank 0: waiting for all ranks: rank 1: out of images");
  }
}

TEST(ProcessGroup, does_not_republish_a_received_failure) {
  for (const Transport transport : {Transport::automatic, Transport::gloo}) {
    const auto statuses = on_ranks(
        2,
        [](ProcessGroup& group) -> Status {
          if (group.rank().value == 1) return group.barrier();
          const Status received = group.explain("averaging", StatusError(invalid("rank 7: out of images")));
          group.abandon(received.message());
          return {};
        },
        transport);
    EXPECT_THAT(std::string(statuses[1].message()),
                AllOf(HasSubstr("rank 0 left"), Not(HasSubstr("images"))));
  }
}

TEST(ProcessGroup, with_one_rank_needs_no_port) {
  auto group = ProcessGroup::connect({});
  ASSERT_TRUE(group.ok());
  double value[] = {3};
  EXPECT_TRUE((*group)->all_reduce_sum(value).ok());
  EXPECT_EQ(value[0], 3);
  EXPECT_TRUE((*group)->barrier().ok());
}

// Local addresses of listening sockets with that port, as in /proc/net/tcp.
std::vector<std::string> listening_addresses(std::uint16_t port) {
  std::vector<std::string> found;
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, "%04X", port);
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string number, local, remote, state, line;
    for (std::getline(lines, line); lines >> number >> local >> remote >> state; std::getline(lines, line)) {
      const std::size_t colon = local.find(':');
      if (state == "0A" && local.substr(colon + 1) == wanted) found.push_back(local.substr(0, colon));
    }
  }
  return found;
}

TEST(ProcessGroup, listens_on_loopback_only_if_that_is_the_address_of_rank_0) {
  const auto listening = [](const std::string& address) {
    const std::uint16_t port = free_port();
    std::vector<std::string> found;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        RendezvousOptions here = rendezvous(rank, 2, port);
        here.address = address;
        auto group = ProcessGroup::connect(here);
        ASSERT_TRUE(group.ok()) << group.status().to_string();
        if (rank == 0) found = listening_addresses(port);
        EXPECT_TRUE((*group)->barrier().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    return found;
  };
  EXPECT_THAT(listening("127.0.0.1"), ElementsAre("0100007F"));
  EXPECT_THAT(listening("127.0.0.2"), ElementsAre("0200007F"));
  EXPECT_THAT(listening("localhost"),
              AnyOf(ElementsAre("0100007F"), ElementsAre("00000000000000000000000001000000")));
}

TEST(ProcessGroup, a_port_in_use_is_named) {
  const std::uint16_t port = free_port();
  const auto other = listen_on_loopback(rendezvous(0, 2, port));
  ASSERT_TRUE(other.ok() && *other);
  EXPECT_EQ(ProcessGroup::connect(rendezvous(0, 2, port)).status().message(),
            format("rank 0: another process listens on 127.0.0.1:{} (EADDRINUSE, MASTER_PORT)", port));
}

TEST(ProcessGroup, names_the_rank_that_does_not_join) {
  RendezvousOptions alone = rendezvous(0, 2, free_port());
  alone.connect_within = std::chrono::milliseconds(200);
  const Status status = ProcessGroup::connect(alone).status();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.message(),
            format("rank 0: rank 1 did not connect to 127.0.0.1:{} within 200 ms (of 2 ranks)", alone.port));
}

TEST(ProcessGroup, reports_that_rank_0_does_not_listen) {
  RendezvousOptions alone = rendezvous(1, 2, free_port());
  alone.connect_within = std::chrono::milliseconds(100);
  EXPECT_EQ(ProcessGroup::connect(alone).status().message(),
            format("rank 1: rank 0 did not open 127.0.0.1:{} within 100 ms (last answer: "
                   "Connection refused)",
                   alone.port));
}

TEST(ProcessGroup, reports_an_unknown_address) {
  RendezvousOptions nowhere = rendezvous(1, 2, 1);
  nowhere.address = "no-such-host.invalid";
  EXPECT_THAT(std::string(ProcessGroup::connect(nowhere).status().message()),
              MatchesRegex("rank 1: 'no-such-host.invalid': .* \\(MASTER_ADDR\\)"));
}

TEST(ProcessGroup, names_the_rank_that_left) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    if (group.rank().value == 1) return {};
    double value[] = {1};
    return group.all_reduce_sum(value);
  });
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
  EXPECT_THAT(
      std::string(statuses[0].message()),
      MatchesRegex("rank 0: summing over ranks: rank 1 left \\(pid [0-9]+ on .*; all-reduce 1 of 8 B of "
                   "float64 waited for it\\)"));
}

TEST(ProcessGroup, names_the_rank_that_does_not_respond) {
  const std::uint16_t port = free_port();
  Status status;
  const auto rank = [&](int number) {
    RendezvousOptions impatient = rendezvous(number, 2, port);
    impatient.call_timeout = std::chrono::milliseconds(300);
    auto group = ProcessGroup::connect(impatient);
    ASSERT_TRUE(group.ok()) << group.status().to_string();
    double value[] = {1};
    if (number == 0) status = (*group)->all_reduce_sum(value);
    // Rank 1 stays connected and idle until rank 0 times out.
    if (number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  };
  std::thread silent(rank, 1);
  rank(0);
  silent.join();
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 0: summing over ranks: rank 1 did not respond within 300 ms ("));
}

TEST(ProcessGroup, names_a_mismatched_collective) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    double values[] = {1, 2};
    return group.all_reduce_sum(std::span(values, group.rank().value == 0 ? 1 : 2));
  });
  EXPECT_EQ(statuses[0].code(), Code::invalid);
  EXPECT_THAT(
      std::string(statuses[0].message()),
      MatchesRegex("rank 0: summing over ranks: rank 1 \\(.*\\) is in all-reduce 1 of 16 B of float64, "
                   "rank 0 in all-reduce 1 of 8 B of float64"));
}

}  // namespace
}  // namespace stoker::train
