#include "torch/communication/parting.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include "torch/communication/test_board.h"

namespace stoker::torch {
namespace {

using ::testing::ElementsAre;

std::string meaning(Board* board, const char* thrown) {
  const Peers peers{{1, 2}, {{"44750", 2}}};
  const Status status = meaning_of(board, {}, peers, std::runtime_error(thrown));
  return format("{}: {}", to_text(status.code()), status.message());
}

TEST(Parting, an_error_of_gloo_names_the_rank_whose_port_it_shows) {
  MapBoard board;
  EXPECT_EQ(meaning(&board, "Read error [127.0.0.1]:44750: Connection reset by peer"),
            "unavailable: rank 2 left (Read error [127.0.0.1]:44750: Connection reset by peer)");
  EXPECT_EQ(meaning(&board, "Connection closed by peer [127.0.0.1]:9"),
            "unavailable: another rank left (Connection closed by peer [127.0.0.1]:9)");
  EXPECT_EQ(meaning(&board, "Timed out waiting 300000ms for recv operation"),
            "timeout: another rank gave no answer within 5 min 00 s (Timed out waiting 300000ms for recv "
            "operation)");
  EXPECT_EQ(meaning(&board, "odd"), "internal: odd");
}

TEST(Parting, the_reason_that_a_rank_left_is_told_instead_of_what_gloo_threw) {
  MapBoard board;
  say_why(board, Rank{2}, "out of images");
  constexpr const char* kThrown = "Read error [127.0.0.1]:44750: Connection reset by peer";
  EXPECT_EQ(meaning(&board, kThrown), "invalid: rank 2: out of images");
  board.has_left = true;
  EXPECT_EQ(meaning(&board, kThrown).substr(0, 24), "unavailable: rank 2 left");
  EXPECT_EQ(meaning(nullptr, kThrown).substr(0, 24), "unavailable: rank 2 left");
  say_why(board, Rank{2}, "nobody reads this");
}

TEST(Parting, last_words_of_ranks_that_leave_none_are_empty) {
  Rendezvous meeting;
  meeting.world_size = WorldSize{3};
  MapBoard board;
  board.set("words/1", "of one");
  board.set("heard/1", "1");
  EXPECT_THAT(trade_last_words(board, meeting, "own", Duration::zero()), ElementsAre("own", "of one", ""));
  board.has_left = true;
  EXPECT_THAT(trade_last_words(board, meeting, "own", Duration::zero()), ElementsAre("own", "", ""));
}

}  // namespace
}  // namespace stoker::torch
