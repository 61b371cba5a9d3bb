// Ranks that share memory, for tests: as threads of this process, and as processes of their own.
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

inline constexpr Duration kMeetWithin = std::chrono::seconds(60);

inline constexpr Arithmetic kFloatSum{Element::f32, Reduction::sum};

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

inline void expect_ok(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

/// An Exchange for this rank; rank 0 brings its Host.
inline Result<std::unique_ptr<Exchange>> take_seat(Host* host, const std::string& address, Seat seat,
                                                   ExchangeOptions options) {
  const Deadline deadline = Deadline::after(kMeetWithin);
  auto region = host != nullptr ? std::move(*host).gather(seat, deadline) : join(address, seat, deadline);
  if (!region.ok()) return std::move(region).error();
  return std::make_unique<Exchange>(std::move(*region), options);
}

/// Runs `body` on each rank in a thread of its own; their statuses by rank.
inline std::vector<Status> on_threads(int ranks, const std::function<Status(Exchange&)>& body,
                                      ExchangeOptions options = {}) {
  std::vector<Status> statuses(static_cast<std::size_t>(ranks));
  auto host = Host::open();
  if (!host.ok()) return {host.status()};
  const std::string address = host->address();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto exchange =
          take_seat(rank == 0 ? &*host : nullptr, address, {Rank(rank), WorldSize(ranks)}, options);
      statuses[static_cast<std::size_t>(rank)] = exchange.ok() ? body(**exchange) : exchange.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

/// A rank in a process of its own, which ends without unwinding when `body` returns.
inline pid_t rank_process(const std::string& address, Seat seat, const std::function<void(Exchange&)>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  auto exchange = take_seat(nullptr, address, seat, {});
  if (exchange.ok()) body(**exchange);
  ::_exit(exchange.ok() ? 0 : 1);
}

}  // namespace stoker::net::shm
