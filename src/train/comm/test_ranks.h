// Ranks as threads of one process, for tests.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <functional>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "stoker/process_group.h"

namespace stoker::train {

/// A port that was free a moment ago.
inline std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return ntohs(address.sin_port);
}

inline RendezvousOptions rendezvous(int rank, int world, std::uint16_t port) {
  RendezvousOptions rendezvous;
  rendezvous.rank = Rank(rank);
  rendezvous.world_size = WorldSize(world);
  rendezvous.port = port;
  rendezvous.connect_within = std::chrono::seconds(30);
  rendezvous.call_timeout = std::chrono::seconds(30);
  return rendezvous;
}

/// Runs `body` on `world` connected ranks, each in its own thread. Returns their statuses by rank.
inline std::vector<Status> on_ranks(int world, const std::function<Status(ProcessGroup&)>& body,
                                    Transport transport = Transport::automatic) {
  std::vector<Status> statuses(static_cast<std::size_t>(world));
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      RendezvousOptions here = rendezvous(rank, world, port);
      here.transport = transport;
      auto group = ProcessGroup::connect(here);
      statuses[static_cast<std::size_t>(rank)] = group.ok() ? body(**group) : group.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace stoker::train
