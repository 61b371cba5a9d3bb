// Calls fsync(2) for files that a thread appends to, without delaying that thread. For the trainer's records
// at checkpoints. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/file.h"
#include "base/thread.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::record {

class BackgroundSync {
 public:
  /// At least one file; all exist.
  explicit BackgroundSync(std::vector<Path> files);
  BackgroundSync(const BackgroundSync&) = delete;
  BackgroundSync& operator=(const BackgroundSync&) = delete;
  /// Waits for an fsync(2) in progress.
  ~BackgroundSync();

  /// Returns at once. What was written before survives a power failure soon.
  void request();
  /// Waits until all requests are done. Returns the first error of any, or Timeout.
  Status wait(Deadline deadline);

 private:
  void run(const StopToken& stop);
  Status sync_files() const;

  const std::vector<Path> files_;
  Mutex mutex_;
  Condition changed_;
  std::uint64_t requested_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ STOKER_GUARDED_BY(mutex_) = 0;
  Status problem_ STOKER_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace stoker::record
