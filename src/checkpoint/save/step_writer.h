// The save of one step by one rank, from the moment its share is asked for: the share is written, at once to
// shared storage or first to the node's own disk, and committed together with the other ranks. Used by
// Saver's threads: with a node's own disk one keeps and another one commits; everything but keep_on_node() is
// for one thread at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "base/time.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/save/commit.h"
#include "checkpoint/save/slot.h"

namespace stoker::checkpoint {

class StepWriter {
 public:
  /// `options` must outlive it.
  explicit StepWriter(const SaverOptions& options) : options_(options) {}

  /// Writes the share to the node's own disk. On an error nothing of it stays there, and the step goes on
  /// from memory. REQUIRES: options.local is set; the step has a slot.
  Status keep_on_node(StepInFlight& step, const StopToken& stop) const;
  /// Brings the share from memory or from the node's own disk to shared storage, and commits the step: after
  /// this point it is published, or given up by all ranks. Blocks until `step.deadline` at most. The times
  /// lack what is not the step's own: SaveTimes::local_problem.
  Result<SaveTimes> commit(StepInFlight& step, const StopToken& stop);
  /// Removes the folders of steps that were given up and whose reason all ranks have read, waiting for that
  /// until the deadline.
  void tidy_what_was_read(Deadline deadline);

 private:
  Status write_kept(StepInFlight& step, const StopToken& stop) const;
  Status write_share(StepInFlight& step, const Path& folder, const StopToken& stop) const;
  Result<SaveTimes> commit_pending(StepInFlight& step, const StopToken& stop);
  Result<SaveTimes> commit_share(StepInFlight& step, PendingStep& pending, const StopToken& stop);
  Status publish(StepInFlight& step, PendingStep& pending, SaveTimes& times, const StopToken& stop);
  void remove_shares(const StepInFlight& step, bool is_saved);
  bool has_been_read(const Path& folder) const;
  void tidy();
  void passed(CommitPoint point) const;

  const SaverOptions& options_;
  std::vector<std::pair<Step, Path>> given_up_;
  std::vector<Path> undrained_;  ///< shares on the node's own disk that could not be brought
};

}  // namespace stoker::checkpoint
