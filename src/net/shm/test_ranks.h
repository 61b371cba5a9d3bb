// Test ranks that share memory: threads of this process, or child processes.
#pragma once

#include <functional>
#include <span>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "net/shm/exchange.h"

namespace stoker::net::shm {

inline constexpr Duration kJoinTimeout = std::chrono::seconds(60);

inline constexpr ReduceSpec kFloatSum{Element::f32, Reduction::sum};

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

inline void expect_ok(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

/// An Exchange for this rank. Rank 0 passes its RegionServer.
inline Result<std::unique_ptr<Exchange>> join_group(RegionServer* host, const std::string& address,
                                                    GroupPosition position, ExchangeOptions options) {
  const Deadline deadline = Deadline::after(kJoinTimeout);
  auto region = host != nullptr ? std::move(*host).create_region(position, deadline)
                                : join(address, position, deadline);
  if (!region.ok()) return std::move(region).error();
  return std::make_unique<Exchange>(std::move(*region), options);
}

/// Runs `body` on each rank in a thread. Returns the statuses by rank.
inline std::vector<Status> run_on_threads(int ranks, const std::function<Status(Exchange&)>& body,
                                          ExchangeOptions options = {}) {
  std::vector<Status> statuses(static_cast<std::size_t>(ranks));
  auto host = RegionServer::open();
  if (!host.ok()) return {host.status()};
  const std::string address = host->address();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto exchange =
          join_group(rank == 0 ? &*host : nullptr, address, {Rank(rank), WorldSize(ranks)}, options);
      statuses[static_cast<std::size_t>(rank)] = exchange.ok() ? body(**exchange) : exchange.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

/// A rank in a child process, which exits without unwinding after `body` returns.
inline pid_t rank_process(const std::string& address, GroupPosition position,
                          const std::function<void(Exchange&)>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  auto exchange = join_group(nullptr, address, position, {});
  if (exchange.ok()) body(**exchange);
  ::_exit(exchange.ok() ? 0 : 1);
}

}  // namespace stoker::net::shm
