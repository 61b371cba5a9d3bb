#include "train/comm/peer_failure.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include "train/comm/test_key_value_store.h"

namespace stoker::train {
namespace {

using ::testing::ElementsAre;

std::string meaning(KeyValueStore* store, const char* thrown) {
  const Peers peers{{1, 2}, {{"44750", 2}}};
  const Status status = to_peer_error(store, {}, peers, std::runtime_error(thrown));
  return format("{}: {}", to_text(status.code()), status.message());
}

TEST(PeerFailure, a_gloo_error_names_the_rank_of_its_port) {
  MapKeyValueStore store;
  EXPECT_EQ(meaning(&store, "Read error [127.0.0.1]:44750: Connection reset by peer"),
            "unavailable: rank 2 left (Read error [127.0.0.1]:44750: Connection reset by peer)");
  EXPECT_EQ(meaning(&store, "Connection closed by peer [127.0.0.1]:9"),
            "unavailable: another rank left (Connection closed by peer [127.0.0.1]:9)");
  EXPECT_EQ(meaning(&store, "Timed out waiting 300000ms for recv operation"),
            "timeout: another rank did not respond within 5 min 00 s (Timed out waiting 300000ms for recv "
            "operation)");
  EXPECT_EQ(meaning(&store, "odd"), "internal: odd");
}

TEST(PeerFailure, a_published_failure_replaces_the_gloo_error) {
  MapKeyValueStore store;
  publish_failure(store, Rank{2}, "out of images");
  constexpr const char* kThrown = "Read error [127.0.0.1]:44750: Connection reset by peer";
  EXPECT_EQ(meaning(&store, kThrown), "invalid: rank 2: out of images");
  store.has_left = true;
  EXPECT_EQ(meaning(&store, kThrown).substr(0, 24), "unavailable: rank 2 left");
  EXPECT_EQ(meaning(nullptr, kThrown).substr(0, 24), "unavailable: rank 2 left");
  publish_failure(store, Rank{2}, "unread");
}

TEST(PeerFailure, failures_of_silent_ranks_are_empty) {
  RendezvousOptions rendezvous;
  rendezvous.world_size = WorldSize{3};
  MapKeyValueStore store;
  store.set("words/1", "of one");
  store.set("received/1", "1");
  EXPECT_THAT(exchange_failures(store, rendezvous, "own", Duration::zero()),
              ElementsAre("own", "of one", ""));
  store.has_left = true;
  EXPECT_THAT(exchange_failures(store, rendezvous, "own", Duration::zero()), ElementsAre("own", "", ""));
}

}  // namespace
}  // namespace stoker::train
