// Joins a rank to its run: reports the rank, reserves the rendezvous port on rank 0, and waits until all
// ranks have joined. Used by rank_runner.cc. Plain values and one function.
#pragma once

#include <optional>
#include <vector>

#include "base/process.h"
#include "net/channel.h"
#include "net/port.h"
#include "rank/environment.h"
#include "rank/member/rank_config.h"
#include "rank/process/signals.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

/// The result of joining.
struct JoinResult {
  net::Channel run;
  std::vector<net::ControlMessage> pending_messages;  ///< received together with the welcome
  /// Reserved for the rendezvous of the training's ranks, or torchrun's nodes, while this lives. Rank 0 only.
  net::PortReservation port;
  /// Nothing when the run refuses this rank, or a signal ended the wait: then `exit` is the rank's exit
  /// status.
  std::optional<Rendezvous> rendezvous;
  Exit exit;
  Duration grace{0};  ///< between SIGTERM and SIGKILL
};

/// Blocks until all ranks of the run have joined, at most for the start limit and a little more. Fails when
/// the run is unreachable, or MASTER_PORT is not a port.
Result<JoinResult> join_run(const RankConfig& config, SignalFd& signals);

}  // namespace stoker::rank
