// Start of an attempt with node-local checkpoints (checkpoint.local): shares of the previous attempt are
// copied to shared storage if they form a complete step. Used by the trainer before it chooses the step to
// resume from. Thread-safe: no state.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "stoker/checkpoint.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// One rank of the new attempt.
struct RecoveryOptions {
  Path directory;  ///< of checkpoints, on shared storage
  Path local;      ///< of this node, for this run
  Rank rank{0};
  WorldSize world_size{1};
  bool is_local_rank0 = true;  ///< handles the node's disk
  std::string writer;          ///< of this attempt: unique within the run
  Duration limit = std::chrono::minutes(5);
  /// As SaverOptions::observe, while this rank copies shares; may be empty. For tests.
  std::function<void(CommitPoint)> observe;
};

/// Result, identical on all ranks.
struct RecoveredStep {
  std::optional<Step> step;  ///< now valid on shared storage and newer than all others there
  std::string lost;          ///< why a newer step could not be recovered; empty: no newer step existed
};

/// Collective over the ranks of the attempt, which communicate through files in the directory. Unusable
/// shares are removed. Timeout naming a rank that did not join.
Result<RecoveredStep> recover_local_steps(const RecoveryOptions& options);

}  // namespace stoker::checkpoint
