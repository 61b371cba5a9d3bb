// Stages the files of a job on several nodes at once: each byte is read from the source by one of them, and
// the nodes send it to each other. Used at the start of a job. Thread-compatible.
#pragma once

#include <memory>
#include <string>

#include "stage/broadcast/broadcast_dataset.h"
#include "stage/broadcast/peer_list.h"
#include "stage/node.h"

namespace stoker::stage {

/// Describes an encoded list, for the other nodes; empty for one that is too long to be sent.
ListHead head_of(const std::string& list);

/// The files that this node stages, and serves to others as long as the object exists.
class TreeBroadcast {
 public:
  /// All nodes use the same request. `folder`: as for stage_in().
  TreeBroadcast(const StageRequest& request, const Path& folder, BroadcastNodes nodes);
  TreeBroadcast(const TreeBroadcast&) = delete;
  TreeBroadcast& operator=(const TreeBroadcast&) = delete;
  ~TreeBroadcast();

  /// Stages all files as stage_in() does, with the same result. `list`: of encode_tree_list(), on the first
  /// node; its peers have the head only. A node that cannot get the list or a file from its peers stages
  /// alone, and note() has the reason. Unavailable if a source changed since it was listed. Call it once.
  Result<TransferStats> run(const ListHead& head, std::string list, Progress& progress);
  /// Why this node staged alone; empty if it did not.
  const std::string& note() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::stage
