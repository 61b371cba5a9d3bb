// Measures the time of a loader's threads per stage. Reading the clock at each stage of each sample would
// cost more than some samples do, so one in eight small samples is timed. Belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/stopwatch.h"

namespace stoker::loader {

enum class Stage { read, check, decode, transform };

class StageClock {
 public:
  using Seconds = std::array<double, 4>;

  /// Every `period`-th sample is timed and counts for all of them.
  explicit StageClock(std::uint32_t period = 1) : period_(period) {}

  /// Starts a sample: time that was not assigned by end() counts for no stage.
  void begin() {
    is_timed_ = count_++ % period_ == 0;
    if (is_timed_) watch_.lap();
  }
  void end(Stage stage) {
    if (is_timed_) seconds_[static_cast<std::size_t>(stage)] += period_ * watch_.lap();
  }
  /// Seconds per stage since the last call.
  Seconds take() { return std::exchange(seconds_, {}); }

 private:
  std::uint32_t period_;
  std::uint32_t count_ = 0;
  bool is_timed_ = false;
  Stopwatch watch_;
  Seconds seconds_{};
};

}  // namespace stoker::loader
