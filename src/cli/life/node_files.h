// The files of `stage` on one node: copied there before its ranks start, and served to other nodes until they
// start. Used by `stoker stage`. Belongs to one thread.
#pragma once

#include <optional>
#include <string>

#include "cli/life/node_peers.h"
#include "stage/broadcast/broadcast_tree.h"
#include "stage/node.h"

namespace stoker::cli {

class NodeFiles {
 public:
  NodeFiles(const stage::StageRequest& request, int node) : request_(request), node_(node) {}
  NodeFiles(const NodeFiles&) = delete;
  NodeFiles& operator=(const NodeFiles&) = delete;

  /// Whether there are files to stage in.
  bool any() const { return !request_.copy.empty() || !request_.unpack.empty(); }
  /// Lists the files for all nodes: the line for the run. On the first node only, if it can be reached.
  Result<std::string> list(Progress& progress);
  /// Stages them; `nodes`: that stage together, if any. Its peers get the list by `peers`.
  Result<stage::TransferStats> place(const Path& folder, const std::optional<stage::BroadcastNodes>& nodes,
                                     NodePeers& peers, Progress& progress);
  /// Why this node staged alone, although there are others; empty if it did not.
  std::string note() const { return broadcast_ ? broadcast_->note() : std::string(); }
  /// No other node needs them any more.
  void stop_serving() { broadcast_.reset(); }

 private:
  const stage::StageRequest& request_;
  const int node_;
  std::string list_;
  std::optional<stage::TreeBroadcast> broadcast_;
};

}  // namespace stoker::cli
