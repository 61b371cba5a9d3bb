#include "train/comm/rendezvous.h"

#include <algorithm>
#include <arpa/inet.h>
#include <utility>

#include "net/shm/hosts.h"
#include "net/shm/region.h"
#include "stoker/text.h"
#include "train/comm/network.h"

namespace stoker::train {

namespace {

// Above this number of ranks, errors name only the address: the exchange of ports grows quadratically.
constexpr std::size_t kMaxNamedRanks = 256;

// gloo prints ports in network byte order. Both readings of a port map to its rank; the swapped one has
// priority.
void add_ports(std::string_view ports, int rank, std::map<std::string, int>& rank_of_port) {
  for (std::string_view text : split(ports, ' ')) {
    std::uint64_t port = 0;
    if (!parse_number(text, &port)) continue;
    rank_of_port.insert_or_assign(std::to_string(htons(static_cast<std::uint16_t>(port))), rank);
    rank_of_port.emplace(text, rank);
  }
}

std::string place_of(const RendezvousOptions& rendezvous) {
  return rendezvous.place.empty() ? net::shm::shared_memory_domain() : rendezvous.place;
}

std::string choose_transport(KeyValueStore& store, const RendezvousOptions& rendezvous,
                             const std::string& address) {
  if (rendezvous.transport == Transport::gloo) return "gloo";
  std::vector<std::string> places{place_of(rendezvous)};
  for (int rank = 1; rank < rendezvous.world_size.value; ++rank)
    places.push_back(store.get(format("place/{}", rank)));
  const net::shm::Hosts hosts = net::shm::Hosts::group_by_domain(places);
  if (hosts.count() == 1) return "shm " + address;
  if (rendezvous.transport == Transport::automatic)
    return hosts.max_ranks_per_host() > 1 ? "hosts " + hosts.to_text() : "gloo";
  const auto elsewhere = std::find_if(places.begin() + 1, places.end(), [&](const std::string& place) {
    return place.empty() || place != places[0];
  });
  return format("error rank {} cannot share memory with rank 0 (train.backend: shm)",
                elsewhere - places.begin());
}

}  // namespace

Status wait_for_all_ranks(KeyValueStore& store, const RendezvousOptions& rendezvous, Deadline deadline) {
  store.set(format("here/{}", rendezvous.rank), "1");
  if (rendezvous.rank.value != 0) return {};
  RealClock clock;
  for (int rank = 1; rank < rendezvous.world_size.value; ++rank) {
    while (!store.has(format("here/{}", rank))) {
      if (deadline.passed()) {
        return timeout("rank {} did not connect to {}:{} within {} (of {} ranks)", rank, rendezvous.address,
                       rendezvous.port, rounded_duration(rendezvous.connect_within), rendezvous.world_size);
      }
      clock.sleep(std::chrono::milliseconds(1));
    }
  }
  return {};
}

void wait_for_acknowledgements(KeyValueStore& store, const RendezvousOptions& rendezvous,
                               std::string_view key, Deadline deadline) {
  store.set(format("{}/{}", key, rendezvous.rank), "1");
  if (rendezvous.rank.value != 0) return;
  RealClock clock;
  for (int rank = 1; rank < rendezvous.world_size.value; ++rank) {
    while (!store.has(format("{}/{}", key, rank)) && !deadline.passed()) {
      clock.sleep(std::chrono::milliseconds(2));
    }
  }
}

std::string publish_transport(KeyValueStore& store, const RendezvousOptions& rendezvous,
                              const std::string& address) {
  std::string choice = choose_transport(store, rendezvous, address);
  store.set("transport", choice);
  return choice;
}

std::string receive_transport(KeyValueStore& store, const RendezvousOptions& rendezvous) {
  store.set(format("place/{}", rendezvous.rank), place_of(rendezvous));
  return store.get("transport");
}

Peers exchange_ports(KeyValueStore& store, Rank own, std::vector<int> others) {
  Peers peers{std::move(others), {}};
  if (peers.ranks.size() >= kMaxNamedRanks) return peers;
  store.set(format("ports/{}", own), own_ports());
  for (const int rank : peers.ranks) add_ports(store.get(format("ports/{}", rank)), rank, peers.rank_of_port);
  return peers;
}

}  // namespace stoker::train
