#include "stage/broadcast/reading_queue.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

using Grants = std::vector<ReadingGrant>;

ReadingQueue started(std::uint32_t nodes, std::uint32_t pieces) {
  ReadingQueue queue(nodes, pieces);
  for (std::uint32_t node = 0; node < nodes; ++node) queue.joined(node);
  return queue;
}

TEST(ReadingQueue, grants_pieces_in_order_to_nodes_in_the_order_of_their_asks) {
  ReadingQueue queue = started(2, 3);
  queue.ask(1);
  queue.ask(0);
  queue.ask(1);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{1, 0}, {0, 1}, {1, 2}}));
  EXPECT_EQ(queue.next(1), Grants());
}

TEST(ReadingQueue, waits_for_all_nodes_that_live) {
  ReadingQueue queue(3, 1);
  queue.joined(0);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), Grants());
  queue.joined(2);
  EXPECT_EQ(queue.next(0), Grants());
  queue.gone(1);
  EXPECT_EQ(queue.next(0), (Grants{{0, 0}}));
  ReadingQueue impatient(2, 1);
  impatient.ask(0);
  impatient.start();
  EXPECT_EQ(impatient.next(0), (Grants{{0, 0}}));
}

TEST(ReadingQueue, a_piece_in_a_cache_is_not_granted) {
  ReadingQueue queue = started(2, 2);
  queue.has(1, 0);
  queue.ask(0);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{0, 1}}));
}

TEST(ReadingQueue, a_piece_is_not_granted_to_a_node_without_room_for_it) {
  ReadingQueue queue = started(2, 2);
  queue.refuses(0, 0);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{0, 1}}));
  queue.ask(1);
  EXPECT_EQ(queue.next(0), (Grants{{1, 0}}));
}

TEST(ReadingQueue, what_a_dead_node_was_reading_is_granted_again) {
  ReadingQueue queue = started(2, 2);
  queue.ask(0);
  queue.ask(0);
  EXPECT_EQ(queue.next(0).size(), 2u);
  queue.has(0, 1);
  queue.ask(1);
  queue.gone(0);
  EXPECT_EQ(queue.next(1), (Grants{{1, 0}}));
  EXPECT_EQ(queue.repeated(), 1u);
  queue.ask(0);  // late news of a dead node
  EXPECT_EQ(queue.next(1), Grants());
  queue.returned(0);
  queue.misses(0, 1);
  EXPECT_EQ(queue.next(1), (Grants{{0, 1}}));
}

TEST(ReadingQueue, a_failed_reading_is_granted_to_a_different_node) {
  ReadingQueue queue = started(2, 1);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{0, 0}}));
  queue.ask(0);
  queue.ask(1);
  queue.failed(0, 0);
  EXPECT_EQ(queue.next(0), (Grants{{1, 0}}));
}

TEST(ReadingQueue, a_late_reading_is_repeated_once) {
  ReadingQueue queue = started(3, 2);
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{0, 0}}));
  queue.ask(1);
  EXPECT_EQ(queue.next(1), (Grants{{1, 1}}));
  queue.has(1, 1);
  queue.ask(1);
  queue.ask(2);
  EXPECT_EQ(queue.next(1.5), Grants());
  EXPECT_EQ(queue.next(20), (Grants{{1, 0}}));
  EXPECT_EQ(queue.next(40), Grants());
  queue.has(1, 0);
  EXPECT_EQ(queue.next(60), Grants());
}

TEST(ReadingQueue, a_piece_that_is_missed_is_read_by_the_node_that_misses_it) {
  ReadingQueue queue = started(2, 1);
  queue.misses(1, 0);  // it is not read yet
  EXPECT_EQ(queue.next(0), Grants());
  queue.ask(0);
  EXPECT_EQ(queue.next(0), (Grants{{0, 0}}));
  queue.misses(1, 0);  // it is being read
  EXPECT_EQ(queue.next(0), Grants());
  queue.has(0, 0);
  queue.ask(0);
  queue.misses(1, 0);
  EXPECT_EQ(queue.next(0), (Grants{{1, 0}}));
}

}  // namespace
}  // namespace stoker::stage
