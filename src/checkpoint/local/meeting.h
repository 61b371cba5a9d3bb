// What an attempt does first when steps go by the nodes' own disks (checkpoint.local): shares that the
// attempt before left there are brought to shared storage, if together they make a step. Used by the trainer
// before it chooses the step to go on from. Thread-safe: no state.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/strong.h"
#include "base/text.h"
#include "base/time.h"
#include "checkpoint/checkpoint.h"

namespace stoker::checkpoint {

/// One rank of the new attempt.
struct MeetingOptions {
  Path directory;  ///< of checkpoints, shared by all ranks
  Path local;      ///< this node's, of this run
  Rank rank{0};
  WorldSize world_size{1};
  bool is_first_of_node = true;  ///< who looks after the node's disk
  std::string writer;            ///< of this attempt: used by no other one of the run
  Duration limit = std::chrono::minutes(5);
  /// As SaverOptions::observe, while this rank brings shares; may be empty. For tests.
  std::function<void(CommitPoint)> observe;
};

/// How it ended, the same on all ranks.
struct Brought {
  std::optional<Step> step;  ///< is whole on shared storage now, newer than all that were there
  std::string lost;          ///< why a newer step could not be brought; empty: there was none
};

/// Collective over the ranks of the attempt, which meet through files in the directory. Shares that were not
/// of use are removed. Timeout naming the ranks that did not come.
Result<Brought> bring_kept_steps(const MeetingOptions& options);

}  // namespace stoker::checkpoint
