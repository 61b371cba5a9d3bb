// How the ranks of a training find each other over the board: who has come, what carries their bytes, by
// which ports they know each other. Used by ProcessGroup. No libtorch. Every function here is called by all
// ranks it concerns, in the same order, and lets through what the board throws.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "torch/communication/board.h"
#include "torch/rendezvous.h"

namespace stoker::torch {

/// Rank 0 learns who is missing, and waits for them until `deadline`: a Timeout names the first. The others
/// only learn that rank 0 is there.
Status roll_call(Board& board, const Rendezvous& meeting, Deadline deadline);

/// Waits until all ranks have said `key`. Rank 0, which keeps the board, must not leave before the others
/// have read what they want there; they need not wait for it.
void say_and_hear(Board& board, const Rendezvous& meeting, std::string_view key, Deadline deadline);

/// What rank 0 decides for all once each rank has said where it is: "shm <address>", "hosts <host of each
/// rank>", "gloo", or "error <why>". `address` is where rank 0 would share memory. REQUIRES: this is rank 0.
std::string decide_transport(Board& board, const Rendezvous& meeting, const std::string& address);
/// The same on any other rank, which says where it is and waits for the word.
std::string hear_transport(Board& board, const Rendezvous& meeting);

/// The ranks that one talks to over gloo.
struct Peers {
  std::vector<int> others;
  std::map<std::string, int> rank_of_port;  ///< "44750" → rank, as error texts of gloo name peers
};

/// `others`, with the ports by which gloo will name them. REQUIRES: all of them do the same.
Peers meet_peers(Board& board, Rank own, std::vector<int> others);

}  // namespace stoker::torch
