// How ranks part: why one goes no further, and what an exception of gloo therefore means on the others. Used
// by ProcessGroup. No libtorch. Not collective; nothing here throws what the board does: rank 0, which keeps
// it, may have left.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "torch/communication/board.h"
#include "torch/communication/meeting.h"
#include "torch/rendezvous.h"

namespace stoker::torch {

/// Leaves the reason for which this rank goes no further where the others look for it.
void say_why(Board& board, Rank rank, std::string_view why);

/// What gloo threw: "rank 2 left (...)", "rank 2: out of images". Never ok. `board` is null in a world of
/// one.
Status meaning_of(Board* board, const Rendezvous& meeting, const Peers& peers, const std::exception& error);

/// Leaves `own` for the other ranks and returns all ranks' lines, in the order of ranks; empty for those that
/// left none within `within`. Once per board.
std::vector<std::string> trade_last_words(Board& board, const Rendezvous& meeting, std::string_view own,
                                          Duration within);

}  // namespace stoker::torch
