#include "train/comm/peer_failure.h"

#include "stoker/exceptions.h"
#include "stoker/text.h"

namespace stoker::train {

namespace {

// The failure that a rank published before it left; usually empty.
std::string published_failure(KeyValueStore* store, int rank) {
  const std::string key = format("abandoned/{}", rank);
  try {
    return rank >= 0 && store != nullptr && store->has(key) ? store->get(key) : "";
  } catch (const std::exception&) {
    return "";  // rank 0, which hosts the store, has left
  }
}

}  // namespace

void publish_failure(KeyValueStore& store, Rank rank, std::string_view why) {
  try {
    store.set(format("abandoned/{}", rank), why);
  } catch (const std::exception&) {
    // Rank 0, which hosts the store, has left. Peers detect that themselves.
  }
}

Status to_peer_error(KeyValueStore* store, const RendezvousOptions& rendezvous, const Peers& peers,
                     const std::exception& error) {
  const std::string text = first_line(error);
  int peer = peers.ranks.size() == 1 ? peers.ranks[0] : -1;
  // "Read error [127.0.0.1]:44750: Connection reset by peer"
  if (const std::size_t at = text.find("]:"); at != std::string::npos) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 2);
    const auto found = peers.rank_of_port.find(text.substr(at + 2, end - at - 2));
    if (found != peers.rank_of_port.end()) peer = found->second;
  }
  if (const std::string why = published_failure(store, peer); !why.empty())
    return invalid("rank {}: {}", peer, why);
  const std::string who = peer < 0 ? "another rank" : format("rank {}", peer);
  if (text.find("imed out") != std::string::npos) {
    return timeout("{} did not respond within {} ({})", who, rounded_duration(rendezvous.call_timeout), text);
  }
  if (text.find("onnection") != std::string::npos) return unavailable("{} left ({})", who, text);
  return internal("{}", text);
}

std::vector<std::string> exchange_failures(KeyValueStore& store, const RendezvousOptions& rendezvous,
                                           std::string_view own, Duration within) {
  std::vector<std::string> words(static_cast<std::size_t>(rendezvous.world_size.value));
  words[static_cast<std::size_t>(rendezvous.rank.value)] = own;
  const Deadline deadline = Deadline::after(within);
  RealClock clock;
  try {
    store.set(format("words/{}", rendezvous.rank), own);
    for (std::size_t other = 0; other < words.size(); ++other) {
      const std::string key = format("words/{}", other);
      while (!store.has(key) && !deadline.passed()) clock.sleep(std::chrono::milliseconds(2));
      if (store.has(key)) words[other] = store.get(key);
    }
    wait_for_acknowledgements(store, rendezvous, "received", deadline);
  } catch (const std::exception&) {
    // Rank 0, which hosts the store, has left: return the failures read so far.
  }
  return words;
}

}  // namespace stoker::train
