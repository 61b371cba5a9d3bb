// How a rank comes to its run: it says what it is, keeps the port where the ranks meet if it is the first
// one, and waits until all have come. Used by member.cc. Plain values and one function.
#pragma once

#include <optional>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "net/channel.h"
#include "net/port.h"
#include "rank/environment.h"
#include "rank/member/invitation.h"
#include "rank/process/signals.h"

namespace stoker::rank {

/// What a rank has then.
struct Joined {
  net::Channel run;
  std::vector<net::Message> early;  ///< came together with the welcome
  /// Where the training's own ranks meet, or torchrun's nodes: kept while this lives. Rank 0's.
  net::PortReservation port;
  /// Nothing when the run will not have this rank, or a signal ended the waiting: then `exit` is the rank's.
  std::optional<Rendezvous> rendezvous;
  Exit exit;
  Duration grace{0};  ///< between asking processes to end and killing them
};

/// Blocks until all ranks of the run have come, its limit for that and a little more. Fails when the run
/// cannot be reached, or MASTER_PORT is no port.
Result<Joined> join_run(const Invitation& invitation, SignalFd& signals);

}  // namespace stoker::rank
