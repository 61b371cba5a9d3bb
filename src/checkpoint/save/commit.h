// Makes a step folder appear completely or not at all; ranks communicate through files in it. Used by Saver's
// writer thread. Thread-compatible: a PendingStep belongs to one thread of one rank.
#pragma once

#include <vector>

#include "base/thread.h"
#include "checkpoint/manifest.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// One rank's part in the commit of one step.
class PendingStep {
 public:
  /// `repeat` as in pending_folder_name(): identical on all ranks. `options` must outlive it.
  PendingStep(const SaverOptions& options, Step step, std::uint64_t repeat, Deadline deadline);
  /// For a save started by another writer: its name, and the folder's writer in `options`.
  PendingStep(const SaverOptions& options, Step step, std::string save, Deadline deadline);

  /// Folder for this rank's files, and the save name for their headers.
  const Path& folder() const { return pending_; }
  const std::string& save() const { return save_; }

  /// Point 1. Exists if another writer of this name left the folder there.
  Status open();
  /// Point 3, after files are written and renamed: syncs their folders.
  Status sync_folders(const std::vector<TensorFile>& files);
  /// Point 4.
  Status write_ready_marker(const ReadyMarker& marker);
  /// Point 5, rank 0: every rank's marker, by rank, checked against `own` (rank 0's) and against the files.
  /// The error of a failed rank, or Timeout naming missing ranks.
  Result<std::vector<ReadyMarker>> collect(ReadyMarker own, const StopToken& stop);
  /// Points 6 to 8, rank 0.
  Status publish(const StepManifest& manifest);
  /// Other ranks: waits until rank 0 has published or aborted the step.
  Status wait_for_commit(const StopToken& stop);
  /// The error to report: rank 0's reason if files vanished because rank 0 aborted the step.
  Status explain(const Status& error) const;
  /// After an error: notifies the peers and removes this rank's files (rank 0: all files). A rank that has
  /// written its ready marker leaves its files to rank 0, which may be publishing them.
  void abort(const Status& error, const std::vector<TensorFile>& files);

 private:
  Status reported_failure(Rank rank) const;
  Status check_marker(Rank rank, const ReadyMarker& marker, const std::string& layout) const;
  Status check_replaced(const Path& place) const;
  Status rename_into_place();
  void notify_observer(CommitPoint point) const;
  void back_off(Duration& pause) const;

  const SaverOptions& options_;
  Step step_;
  Path pending_;
  std::string save_;
  Deadline deadline_;
  bool is_ready_ = false;  ///< this rank's ready marker is written
};

/// Notifies the peers that this rank cannot take part in the save of `step`, so that they do not wait for it.
/// Does nothing with one rank, and nothing if the directory cannot be written.
void report_failed_save(const SaverOptions& options, Step step, std::uint64_t repeat, const Status& why);

}  // namespace stoker::checkpoint
