// Memory that one thread fills from its first byte on while others already use what is there: the copy of a
// share, and who writes it to disk. Used by Saver. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/thread.h"
#include "base/time.h"

namespace stoker::checkpoint {

class Arriving {
 public:
  /// Nothing is there yet. REQUIRES: nobody waits.
  void restart() {
    const MutexLock lock(mutex_);
    there_ = 0;
  }
  /// The first `bytes` are there; never fewer than before.
  void reached(std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    there_ = std::max(there_, bytes);
    changed_.notify_all();
  }
  /// All is there.
  void finish() { reached(std::numeric_limits<std::uint64_t>::max()); }
  /// Blocks until the first `bytes` are there; false when they are not at the deadline.
  bool wait(std::uint64_t bytes, Deadline deadline) const {
    const MutexLock lock(mutex_);
    while (there_ < bytes) {
      if (!changed_.wait(mutex_, deadline)) return there_ >= bytes;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::uint64_t there_ GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace stoker::checkpoint
