// Limits the rate of a transfer. Thread-safe: all streams share one limit.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread.h"

namespace stoker {

class Pacer {
 public:
  /// At most `bytes_per_s`; 0: no limit.
  explicit Pacer(std::uint64_t bytes_per_s) : rate_(static_cast<double>(bytes_per_s)) {}
  /// Blocks until `bytes` more may be sent, or until `should_stop`.
  void acquire(std::uint64_t bytes, const std::function<bool()>& should_stop);
  /// Largest number of bytes that one acquire() should request: a tenth of a second, at most a block.
  std::uint64_t piece() const;

 private:
  const double rate_;
  Mutex mutex_;
  MonoTime due_ STOKER_GUARDED_BY(mutex_){};
};

}  // namespace stoker
