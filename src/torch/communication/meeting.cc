#include "torch/communication/meeting.h"

#include <algorithm>
#include <arpa/inet.h>
#include <utility>

#include "base/text.h"
#include "net/shm/hosts.h"
#include "net/shm/region.h"
#include "torch/communication/network.h"

namespace stoker::torch {

namespace {

// Ranks beyond this many are named by address only: the exchange of ports grows with the square of their
// number.
constexpr std::size_t kMostNamedRanks = 256;

// gloo prints ports as they lie in memory, in network order: both readings of a port stand for its rank, that
// one first.
void add_ports(std::string_view ports, int rank, std::map<std::string, int>& rank_of_port) {
  for (std::string_view text : split(ports, ' ')) {
    std::uint64_t port = 0;
    if (!parse_number(text, &port)) continue;
    rank_of_port.insert_or_assign(std::to_string(htons(static_cast<std::uint16_t>(port))), rank);
    rank_of_port.emplace(text, rank);
  }
}

std::string place_of(const Rendezvous& meeting) {
  return meeting.place.empty() ? net::shm::place() : meeting.place;
}

std::string choose_transport(Board& board, const Rendezvous& meeting, const std::string& address) {
  if (meeting.transport == Transport::gloo) return "gloo";
  std::vector<std::string> places{place_of(meeting)};
  for (int rank = 1; rank < meeting.world_size.value; ++rank)
    places.push_back(board.get(format("place/{}", rank)));
  const net::shm::Hosts hosts = net::shm::Hosts::of_places(places);
  if (hosts.count() == 1) return "shm " + address;
  if (meeting.transport == Transport::automatic)
    return hosts.most() > 1 ? "hosts " + hosts.to_text() : "gloo";
  const auto elsewhere = std::find_if(places.begin() + 1, places.end(), [&](const std::string& place) {
    return place.empty() || place != places[0];
  });
  return format("error rank {} cannot share memory with rank 0 (train.backend: shm)",
                elsewhere - places.begin());
}

}  // namespace

Status roll_call(Board& board, const Rendezvous& meeting, Deadline deadline) {
  board.set(format("here/{}", meeting.rank), "1");
  if (meeting.rank.value != 0) return {};
  RealClock clock;
  for (int rank = 1; rank < meeting.world_size.value; ++rank) {
    while (!board.has(format("here/{}", rank))) {
      if (deadline.passed()) {
        return timeout("rank {} did not come to {}:{} within {} (of {} ranks)", rank, meeting.address,
                       meeting.port, rounded_duration(meeting.connect_within), meeting.world_size);
      }
      clock.sleep(std::chrono::milliseconds(1));
    }
  }
  return {};
}

void say_and_hear(Board& board, const Rendezvous& meeting, std::string_view key, Deadline deadline) {
  board.set(format("{}/{}", key, meeting.rank), "1");
  if (meeting.rank.value != 0) return;
  RealClock clock;
  for (int rank = 1; rank < meeting.world_size.value; ++rank) {
    while (!board.has(format("{}/{}", key, rank)) && !deadline.passed()) {
      clock.sleep(std::chrono::milliseconds(2));
    }
  }
}

std::string decide_transport(Board& board, const Rendezvous& meeting, const std::string& address) {
  std::string choice = choose_transport(board, meeting, address);
  board.set("transport", choice);
  return choice;
}

std::string hear_transport(Board& board, const Rendezvous& meeting) {
  board.set(format("place/{}", meeting.rank), place_of(meeting));
  return board.get("transport");
}

Peers meet_peers(Board& board, Rank own, std::vector<int> others) {
  Peers peers{std::move(others), {}};
  if (peers.others.size() >= kMostNamedRanks) return peers;
  board.set(format("ports/{}", own), own_ports());
  for (const int rank : peers.others)
    add_ports(board.get(format("ports/{}", rank)), rank, peers.rank_of_port);
  return peers;
}

}  // namespace stoker::torch
