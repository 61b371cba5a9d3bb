#include "torch/communication/parting.h"

#include "base/text.h"
#include "torch/edge.h"

namespace stoker::torch {

namespace {

// What a rank said before it left, over gloo; usually nothing.
std::string reason_of(Board* board, int rank) {
  const std::string key = format("abandoned/{}", rank);
  try {
    return rank >= 0 && board != nullptr && board->has(key) ? board->get(key) : "";
  } catch (const std::exception&) {
    return "";  // rank 0, which keeps the board, has left
  }
}

}  // namespace

void say_why(Board& board, Rank rank, std::string_view why) {
  try {
    board.set(format("abandoned/{}", rank), why);
  } catch (const std::exception&) {
    // Rank 0, which keeps the board, has left: the others notice that themselves.
  }
}

Status meaning_of(Board* board, const Rendezvous& meeting, const Peers& peers, const std::exception& error) {
  const std::string text = brief(error);
  int peer = peers.others.size() == 1 ? peers.others[0] : -1;
  // "Read error [127.0.0.1]:44750: Connection reset by peer"
  if (const std::size_t at = text.find("]:"); at != std::string::npos) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 2);
    const auto found = peers.rank_of_port.find(text.substr(at + 2, end - at - 2));
    if (found != peers.rank_of_port.end()) peer = found->second;
  }
  if (const std::string why = reason_of(board, peer); !why.empty()) return invalid("rank {}: {}", peer, why);
  const std::string who = peer < 0 ? "another rank" : format("rank {}", peer);
  if (text.find("imed out") != std::string::npos) {
    return timeout("{} gave no answer within {} ({})", who, rounded_duration(meeting.answer_within), text);
  }
  if (text.find("onnection") != std::string::npos) return unavailable("{} left ({})", who, text);
  return internal("{}", text);
}

std::vector<std::string> trade_last_words(Board& board, const Rendezvous& meeting, std::string_view own,
                                          Duration within) {
  std::vector<std::string> words(static_cast<std::size_t>(meeting.world_size.value));
  words[static_cast<std::size_t>(meeting.rank.value)] = own;
  const Deadline deadline = Deadline::after(within);
  RealClock clock;
  try {
    board.set(format("words/{}", meeting.rank), own);
    for (std::size_t other = 0; other < words.size(); ++other) {
      const std::string key = format("words/{}", other);
      while (!board.has(key) && !deadline.passed()) clock.sleep(std::chrono::milliseconds(2));
      if (board.has(key)) words[other] = board.get(key);
    }
    say_and_hear(board, meeting, "heard", deadline);
  } catch (const std::exception&) {
    // Rank 0, which keeps the board, has left: what has been read so far is what there is.
  }
  return words;
}

}  // namespace stoker::torch
