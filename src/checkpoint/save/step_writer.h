// Save of one step by one rank, from the request on: the share is written, directly to shared storage or
// first to the node-local disk, and committed together with the other ranks. Used by Saver's threads: with a
// node-local disk one writes locally and another one commits; everything except write_locally() is for one
// thread at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/thread.h"
#include "checkpoint/save/commit.h"
#include "checkpoint/save/slot.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

class StepWriter {
 public:
  /// `options` must outlive it.
  explicit StepWriter(const SaverOptions& options) : options_(options) {}

  /// Writes the share to the node-local disk. After an error nothing of it stays there, and the step
  /// continues from memory. REQUIRES: options.local is set; the step has a slot.
  Status write_locally(StepInFlight& step, const StopToken& stop) const;
  /// Writes the share from memory or the node-local disk to shared storage and commits the step. Afterwards
  /// it is published, or aborted by all ranks. Blocks until `step.deadline` at most. SaveTimes::local_error
  /// is not set.
  Result<SaveTimes> commit(StepInFlight& step, const StopToken& stop);
  /// Removes the folders of aborted steps after all ranks have read the reason; waits for that until the
  /// deadline.
  void remove_acknowledged(Deadline deadline);

 private:
  Status write_local_files(StepInFlight& step, const StopToken& stop) const;
  Status write_share(StepInFlight& step, const Path& folder, const StopToken& stop) const;
  Result<SaveTimes> commit_pending(StepInFlight& step, const StopToken& stop);
  Result<SaveTimes> commit_share(StepInFlight& step, PendingStep& pending, const StopToken& stop);
  Status publish(StepInFlight& step, PendingStep& pending, SaveTimes& times, const StopToken& stop);
  void remove_shares(const StepInFlight& step, bool is_saved);
  bool is_acknowledged(const Path& folder) const;
  void remove_aborted();
  void notify_observer(CommitPoint point) const;

  const SaverOptions& options_;
  std::vector<std::pair<Step, Path>> aborted_;
  std::vector<Path> undrained_;  ///< shares on the node-local disk that could not be copied
};

}  // namespace stoker::checkpoint
