#include "torch/communication/meeting.h"

#include <arpa/inet.h>

#include <gmock/gmock.h>

#include "net/shm/hosts.h"
#include "torch/communication/test_board.h"

namespace stoker::torch {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Rendezvous first_of(int ranks) {
  Rendezvous meeting;
  meeting.world_size = WorldSize{ranks};
  meeting.port = 2900;
  meeting.place = "a";
  return meeting;
}

// What rank 0, which is at "a", decides when the others are at `places`.
std::string decided(const std::vector<std::string>& places, Transport wanted = Transport::automatic) {
  Rendezvous meeting = first_of(static_cast<int>(places.size()) + 1);
  meeting.transport = wanted;
  MapBoard board;
  for (std::size_t i = 0; i < places.size(); ++i) board.set(format("place/{}", i + 1), places[i]);
  std::string choice = decide_transport(board, meeting, "@segment");
  EXPECT_EQ(board.texts.at("transport"), choice);
  return choice;
}

TEST(Meeting, ranks_of_one_host_share_memory_and_those_of_several_where_some_can) {
  EXPECT_EQ(decided({"a", "a"}), "shm @segment");
  EXPECT_EQ(decided({"b", "c"}), "gloo");
  const std::string both = decided({"a", "b"});
  EXPECT_EQ(both.substr(0, 6), "hosts ");
  const auto hosts = net::shm::Hosts::parse(both.substr(6));
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->count(), 2u);
}

TEST(Meeting, a_wish_for_gloo_asks_nobody_where_it_is) { EXPECT_EQ(decided({}, Transport::gloo), "gloo"); }

TEST(Meeting, a_wish_for_shared_memory_names_the_rank_that_is_elsewhere) {
  EXPECT_EQ(decided({"a", "b"}, Transport::shared_memory),
            "error rank 2 cannot share memory with rank 0 (train.backend: shm)");
}

TEST(Meeting, another_rank_says_where_it_is_and_hears_what_was_decided) {
  Rendezvous meeting = first_of(2);
  meeting.rank = Rank{1};
  MapBoard board;
  board.set("transport", "gloo");
  EXPECT_EQ(hear_transport(board, meeting), "gloo");
  EXPECT_EQ(board.texts.at("place/1"), "a");
}

TEST(Meeting, the_roll_call_names_who_is_missing) {
  MapBoard board;
  board.set("here/1", "1");
  EXPECT_TRUE(roll_call(board, first_of(2), Deadline::after(Duration::zero())).ok());
  EXPECT_EQ(roll_call(board, first_of(3), Deadline::after(Duration::zero())).message(),
            "rank 2 did not come to 127.0.0.1:2900 within 1 min 00 s (of 3 ranks)");
}

TEST(Meeting, a_port_names_its_rank_in_both_orders_of_its_bytes) {
  MapBoard board;
  board.set("ports/1", "2901 ");
  board.set("ports/2", "2902 x ");
  const Peers peers = meet_peers(board, Rank{0}, {1, 2});
  const auto swapped = [](std::uint16_t port) { return std::to_string(htons(port)); };
  EXPECT_THAT(peers.rank_of_port, UnorderedElementsAre(Pair("2901", 1), Pair(swapped(2901), 1),
                                                       Pair("2902", 2), Pair(swapped(2902), 2)));
}

}  // namespace
}  // namespace stoker::torch
