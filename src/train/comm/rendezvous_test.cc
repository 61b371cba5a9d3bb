#include "train/comm/rendezvous.h"

#include <arpa/inet.h>

#include <gmock/gmock.h>

#include "net/shm/hosts.h"
#include "train/comm/test_key_value_store.h"

namespace stoker::train {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

RendezvousOptions first_of(int ranks) {
  RendezvousOptions rendezvous;
  rendezvous.world_size = WorldSize{ranks};
  rendezvous.port = 2900;
  rendezvous.place = "a";
  return rendezvous;
}

// The choice of rank 0 at "a" with peers at `places`.
std::string decided(const std::vector<std::string>& places, Transport wanted = Transport::automatic) {
  RendezvousOptions rendezvous = first_of(static_cast<int>(places.size()) + 1);
  rendezvous.transport = wanted;
  MapKeyValueStore store;
  for (std::size_t i = 0; i < places.size(); ++i) store.set(format("place/{}", i + 1), places[i]);
  std::string choice = publish_transport(store, rendezvous, "@segment");
  EXPECT_EQ(store.texts.at("transport"), choice);
  return choice;
}

TEST(Rendezvous, ranks_on_the_same_host_share_memory) {
  EXPECT_EQ(decided({"a", "a"}), "shm @segment");
  EXPECT_EQ(decided({"b", "c"}), "gloo");
  const std::string both = decided({"a", "b"});
  EXPECT_EQ(both.substr(0, 6), "hosts ");
  const auto hosts = net::shm::Hosts::parse(both.substr(6));
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->count(), 2u);
}

TEST(Rendezvous, requesting_gloo_needs_no_locations) { EXPECT_EQ(decided({}, Transport::gloo), "gloo"); }

TEST(Rendezvous, requesting_shared_memory_names_the_remote_rank) {
  EXPECT_EQ(decided({"a", "b"}, Transport::shared_memory),
            "error rank 2 cannot share memory with rank 0 (train.backend: shm)");
}

TEST(Rendezvous, other_ranks_publish_their_location_and_receive_the_transport) {
  RendezvousOptions rendezvous = first_of(2);
  rendezvous.rank = Rank{1};
  MapKeyValueStore store;
  store.set("transport", "gloo");
  EXPECT_EQ(receive_transport(store, rendezvous), "gloo");
  EXPECT_EQ(store.texts.at("place/1"), "a");
}

TEST(Rendezvous, a_missing_rank_is_named) {
  MapKeyValueStore store;
  store.set("here/1", "1");
  EXPECT_TRUE(wait_for_all_ranks(store, first_of(2), Deadline::after(Duration::zero())).ok());
  EXPECT_EQ(wait_for_all_ranks(store, first_of(3), Deadline::after(Duration::zero())).message(),
            "rank 2 did not connect to 127.0.0.1:2900 within 1 min 00 s (of 3 ranks)");
}

TEST(Rendezvous, a_port_maps_to_its_rank_in_both_byte_orders) {
  MapKeyValueStore store;
  store.set("ports/1", "2901 ");
  store.set("ports/2", "2902 x ");
  const Peers peers = exchange_ports(store, Rank{0}, {1, 2});
  const auto swapped = [](std::uint16_t port) { return std::to_string(htons(port)); };
  EXPECT_THAT(peers.rank_of_port, UnorderedElementsAre(Pair("2901", 1), Pair(swapped(2901), 1),
                                                       Pair("2902", 2), Pair(swapped(2902), 2)));
}

}  // namespace
}  // namespace stoker::train
