// Writes a run's points to one file, each point once, also when it is killed: a restart cuts off what the
// stored state does not know. One thread.
#pragma once

#include <memory>

#include "track/files/file_format.h"
#include "track/run/tracker.h"

namespace stoker::track {

class FileTracker final : public Tracker {
 public:
  /// The file's path is in `folder`, which must exist.
  FileTracker(Path folder, std::unique_ptr<FileFormat> file_format)
      : folder_(std::move(folder)), format_(std::move(file_format)) {}

  Status begin(const TrackedRun& run, TrackState& state) override;
  Status deliver(const PointBatch& batch, bool is_repeated, TrackState& state) override;
  Status end(const TrackedRun& run, TrackState& state) override;
  std::size_t batch_limit() const override { return 50'000; }
  bool needs_pending() const override { return false; }

 private:
  Status append(const std::string& bytes);

  Path folder_;
  std::unique_ptr<FileFormat> format_;
  Path place_;  ///< of the file
  File file_;
  FileEnd written_;  ///< without a tail
};

}  // namespace stoker::track
