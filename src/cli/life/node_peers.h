// The lines that a node of a staged job gets from the run that started it, and its connections to the other
// nodes. Used by `stoker stage`. Belongs to one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "stage/broadcast/broadcast_dataset.h"
#include "stage/broadcast/peer_list.h"
#include "stoker/progress.h"
#include "stoker/time.h"

namespace stoker::cli {

class NodePeers {
 public:
  NodePeers(int node, ByteCount rate) : node_(node), rate_(rate) {}

  /// Starts to listen: the line for the run.
  std::string listen();
  bool is_listening() const { return server_ != nullptr; }
  /// The nodes of the job, without end until the run sent them or has ended; nothing: this node stages alone.
  /// They refer to this object.
  std::optional<stage::BroadcastNodes> wait_for_peers(const Progress& progress);
  /// What the first node listed, without end as wait_for_peers().
  std::optional<stage::ListHead> wait_for_list(const Progress& progress);
  /// The next other line; empty at the deadline.
  std::string next_line(Deadline deadline);
  /// The run has ended, or ends its ranks.
  bool is_closed() const { return is_closed_ && lines_.empty(); }

 private:
  const int node_;
  const ByteCount rate_;
  std::unique_ptr<stage::SwarmServer> server_;
  std::string partial_;
  std::deque<std::string> lines_;
  bool is_closed_ = false;
};

}  // namespace stoker::cli
