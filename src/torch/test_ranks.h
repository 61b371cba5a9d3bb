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

#include "torch/process_group.h"

namespace stoker::torch {

/// A port nobody listened on a moment ago.
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

inline Rendezvous meeting(int rank, int world, std::uint16_t port) {
  Rendezvous meeting;
  meeting.rank = Rank(rank);
  meeting.world_size = WorldSize(world);
  meeting.port = port;
  meeting.connect_within = std::chrono::seconds(30);
  meeting.answer_within = std::chrono::seconds(30);
  return meeting;
}

/// Connects `world` ranks and runs `body` on each in its own thread; their statuses by rank.
inline std::vector<Status> on_ranks(int world, const std::function<Status(ProcessGroup&)>& body,
                                    Transport transport = Transport::automatic) {
  std::vector<Status> statuses(static_cast<std::size_t>(world));
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      Rendezvous here = meeting(rank, world, port);
      here.transport = transport;
      auto group = ProcessGroup::connect(here);
      statuses[static_cast<std::size_t>(rank)] = group.ok() ? body(**group) : group.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace stoker::torch
