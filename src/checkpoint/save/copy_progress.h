// Memory that one thread fills from the start while others already use the filled part: the copy of a share
// and its writer. Used by Saver. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/thread.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

class CopyProgress {
 public:
  /// Resets to empty. REQUIRES: no thread waits.
  void restart() {
    const MutexLock lock(mutex_);
    available_ = 0;
  }
  /// The first `bytes` are filled; never fewer than before.
  void advance(std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    available_ = std::max(available_, bytes);
    changed_.notify_all();
  }
  /// Everything is filled.
  void finish() { advance(std::numeric_limits<std::uint64_t>::max()); }
  /// Blocks until the first `bytes` are filled; false if they are not at the deadline.
  bool wait(std::uint64_t bytes, Deadline deadline) const {
    const MutexLock lock(mutex_);
    while (available_ < bytes) {
      if (!changed_.wait(mutex_, deadline)) return available_ >= bytes;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::uint64_t available_ STOKER_GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace stoker::checkpoint
