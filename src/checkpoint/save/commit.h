// Makes a step folder appear all at once or not at all, the ranks meeting through files in it. Used by
// Saver's writer thread. Thread-compatible: one PendingStep belongs to one thread of one rank.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// One rank's part in the commit of one step.
class PendingStep {
 public:
  /// `repeat` as in pending_folder_name(): the same on every rank. `options` must outlive it.
  PendingStep(const SaverOptions& options, Step step, std::uint64_t repeat, Deadline deadline);
  /// The same for a save that another writer began: its name, and the writer in whose folder it ends.
  PendingStep(const SaverOptions& options, Step step, std::string save, Deadline deadline);

  /// Where this rank writes its files, and the name of the save that goes into their headers.
  const Path& folder() const { return pending_; }
  const std::string& save() const { return save_; }

  /// Point 1. Exists when another writer of this name left the folder there.
  Status open();
  /// Point 3, after the files are written and renamed: syncs the folders they are in.
  Status sync_folders(const std::vector<ShardFile>& files);
  /// Point 4.
  Status tell_ready(const ReadyMarker& marker);
  /// Point 5, rank 0: every rank's marker, by rank, checked against `own`, rank 0's, and against the files.
  /// The error of the rank that failed, or Timeout naming the ranks that are missing.
  Result<std::vector<ReadyMarker>> collect(ReadyMarker own, const StopToken& stop);
  /// Points 6 to 8, rank 0.
  Status publish(const Manifest& manifest);
  /// Ranks other than 0: waits until rank 0 has published the step or given it up.
  Status await_outcome(const StopToken& stop);
  /// What to tell of an error of this rank: rank 0's reason when files vanished because rank 0 gave the step
  /// up.
  Status explain(const Status& error) const;
  /// After an error: tells the others, and removes this rank's files (rank 0: all files).
  void give_up(const Status& error, const std::vector<ShardFile>& files);

 private:
  Status error_of(Rank rank) const;
  Status check_marker(Rank rank, const ReadyMarker& marker, const std::string& layout) const;
  Status put_in_place();
  void passed(CommitPoint point) const;
  void nap(Duration& pause) const;

  const SaverOptions& options_;
  Step step_;
  Path pending_;
  std::string save_;
  Deadline deadline_;
};

}  // namespace stoker::checkpoint
