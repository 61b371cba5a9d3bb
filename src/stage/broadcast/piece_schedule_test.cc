#include "stage/broadcast/piece_schedule.h"

#include <set>

#include <gtest/gtest.h>

#include "stage/broadcast/piece.h"

namespace stoker::stage {
namespace {

PieceSchedule wanting(std::uint32_t pieces, SwarmLimits limits = {}) {
  PieceSchedule schedule(0, {1, 2, 3}, pieces, limits);
  for (std::uint32_t piece = 0; piece < pieces; ++piece) schedule.wants(piece);
  return schedule;
}

std::vector<PieceRequest> requests_of(PieceSchedule& schedule, double now) {
  std::vector<PieceRequest> found;
  while (const auto request = schedule.next_request(now)) found.push_back(*request);
  return found;
}

TEST(PieceSchedule, requests_only_what_a_neighbour_has_and_each_piece_once) {
  PieceSchedule schedule = wanting(10);
  EXPECT_EQ(schedule.next_request(0), std::nullopt);
  for (const std::uint32_t piece : {2u, 4u, 6u}) schedule.neighbour_has(1, piece);
  for (const std::uint32_t piece : {4u, 6u}) schedule.neighbour_has(3, piece);
  schedule.neighbour_has(7, 1);  // not a neighbour
  const auto requests = requests_of(schedule, 0);
  std::set<std::uint32_t> pieces;
  for (const PieceRequest& request : requests) pieces.insert(request.piece);
  EXPECT_EQ(requests.size(), 3u);
  EXPECT_EQ(pieces, (std::set<std::uint32_t>{2, 4, 6}));
}

TEST(PieceSchedule, a_neighbour_gets_few_requests_at_once) {
  PieceSchedule schedule = wanting(10, {.requests_per_neighbour = 2, .requests = 3});
  for (std::uint32_t piece = 0; piece < 10; ++piece) schedule.neighbour_has(1, piece);
  const auto requests = requests_of(schedule, 0);
  EXPECT_EQ(requests.size(), 2u);
  for (std::uint32_t piece = 0; piece < 10; ++piece) schedule.neighbour_has(2, piece);
  EXPECT_EQ(requests_of(schedule, 0).size(), 1u);
  schedule.stored(requests[0].piece, 1);
  EXPECT_EQ(requests_of(schedule, 1).size(), 1u);
  EXPECT_EQ(schedule.left(), 9u);
}

TEST(PieceSchedule, urgent_pieces_are_requested_before_rarer_ones) {
  PieceSchedule schedule = wanting(10, {.requests_per_neighbour = 3, .urgent = 2});
  for (const std::uint32_t piece : {0u, 1u}) schedule.neighbour_has(3, piece);
  for (std::uint32_t piece = 0; piece < 10; ++piece) schedule.neighbour_has(1, piece);
  const auto requests = requests_of(schedule, 0);
  std::set<std::uint32_t> first{requests.at(0).piece, requests.at(1).piece};
  EXPECT_EQ(first, (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(requests.size(), 4u);  // two of neighbour 1 are left for others
}

TEST(PieceSchedule, a_late_request_is_repeated_at_a_different_neighbour) {
  PieceSchedule schedule = wanting(1);
  schedule.neighbour_has(1, 0);
  EXPECT_EQ(schedule.next_request(0), (PieceRequest{1, 0}));
  schedule.neighbour_has(2, 0);
  EXPECT_EQ(schedule.next_request(1), std::nullopt);
  EXPECT_EQ(schedule.next_request(3), (PieceRequest{2, 0}));
  schedule.stored(0, 4);
  EXPECT_EQ(schedule.left(), 0u);
}

TEST(PieceSchedule, requests_of_a_neighbour_that_is_gone_are_made_elsewhere) {
  PieceSchedule schedule = wanting(1);
  schedule.neighbour_has(1, 0);
  EXPECT_EQ(schedule.next_request(0), (PieceRequest{1, 0}));
  schedule.neighbour_gone(1);
  EXPECT_EQ(schedule.next_request(0), std::nullopt);
  schedule.neighbour_has(3, 0);
  EXPECT_EQ(schedule.next_request(0), (PieceRequest{3, 0}));
  schedule.refused(3, 0);
  EXPECT_EQ(schedule.next_request(0), std::nullopt);
}

TEST(PieceSchedule, reads_few_pieces_at_once_and_none_while_others_wait_for_it) {
  PieceSchedule schedule = wanting(10, {.readings = 2, .backlog = 3});
  EXPECT_FALSE(schedule.asks_to_read(4));
  EXPECT_TRUE(schedule.asks_to_read(3));
  EXPECT_TRUE(schedule.asks_to_read(0));
  EXPECT_FALSE(schedule.asks_to_read(0));
  EXPECT_TRUE(schedule.granted(5));
  schedule.forget_asks();
  EXPECT_TRUE(schedule.asks_to_read(0));
  EXPECT_FALSE(schedule.asks_to_read(0));
  schedule.reading_ended(5, true, 1);
  EXPECT_TRUE(schedule.has(5));
  EXPECT_TRUE(schedule.asks_to_read(0));
  EXPECT_FALSE(schedule.granted(5));  // it has the piece
}

TEST(PieceSchedule, a_piece_that_no_neighbour_has_is_missed_after_a_while) {
  PieceSchedule schedule = wanting(2);
  schedule.neighbour_has(1, 0);
  EXPECT_EQ(schedule.missed(0), std::nullopt);
  EXPECT_EQ(schedule.missed(4), std::nullopt);
  EXPECT_EQ(schedule.missed(6), 1u);
  EXPECT_EQ(schedule.missed(7), std::nullopt);
  EXPECT_EQ(schedule.missed(12), 1u);
  schedule.neighbour_has(2, 1);
  EXPECT_EQ(schedule.missed(20), std::nullopt);
}

TEST(PieceSchedule, a_piece_that_was_given_up_is_not_requested) {
  PieceSchedule schedule = wanting(2);
  schedule.gives_up(0);
  schedule.neighbour_has(1, 0);
  EXPECT_EQ(schedule.next_request(0), std::nullopt);
  EXPECT_EQ(schedule.left(), 1u);
  EXPECT_EQ(schedule.first_without_holder(), 1u);
}

TEST(Pieces, shards_are_divided_into_whole_blocks) {
  EXPECT_EQ(divide_shards({10, 0, 4, 25}, {4}, 100), (std::vector<ShardPiece>{{0, 0, 4},
                                                                              {0, 4, 4},
                                                                              {0, 8, 2},
                                                                              {2, 0, 4},
                                                                              {3, 0, 4},
                                                                              {3, 4, 4},
                                                                              {3, 8, 4},
                                                                              {3, 12, 4},
                                                                              {3, 16, 4},
                                                                              {3, 20, 4},
                                                                              {3, 24, 1}}));
  EXPECT_EQ(divide_shards({100}, {4}, 5),
            (std::vector<ShardPiece>{{0, 0, 24}, {0, 24, 24}, {0, 48, 24}, {0, 72, 24}, {0, 96, 4}}));
  EXPECT_TRUE(divide_shards({}, {4}, 5).empty());
}

TEST(Pieces, neighbours_are_mutual_and_connect_all_nodes) {
  for (const std::uint32_t nodes : {1u, 2u, 32u, 33u, 100u, 1024u}) {
    std::set<std::uint32_t> reached{0};
    std::vector<std::uint32_t> next{0};
    while (!next.empty()) {
      const std::uint32_t node = next.back();
      next.pop_back();
      const auto neighbours = swarm_neighbours(node, nodes);
      EXPECT_LE(neighbours.size(), 31u);
      for (const std::uint32_t other : neighbours) {
        EXPECT_NE(other, node);
        const auto back = swarm_neighbours(other, nodes);
        EXPECT_TRUE(std::ranges::find(back, node) != back.end());
        if (reached.insert(other).second) next.push_back(other);
      }
    }
    EXPECT_EQ(reached.size(), nodes);
  }
}

}  // namespace
}  // namespace stoker::stage
