// Run times of tasks as a histogram of constant size: quantiles within a tenth. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace stoker::farm {

class RunTimes {
 public:
  void add(double seconds) {
    count_ += 1;
    total_ += seconds;
    buckets_[bucket_of(seconds)] += 1;
  }
  std::uint64_t count() const { return count_; }
  /// 0 without a task.
  double mean() const { return count_ == 0 ? 0 : total_ / static_cast<double>(count_); }
  /// An upper bound of the run time of this share of the tasks; 0 without a task.
  double quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen >= wanted && seen > 0) return kShortest * std::exp2(static_cast<double>(i) / kPerDoubling);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kBuckets = 256;
  static constexpr double kPerDoubling = 8;
  static constexpr double kShortest = 0.001;  // seconds

  static std::size_t bucket_of(double seconds) {
    if (!(seconds > kShortest)) return 0;
    const double position = std::ceil(std::log2(seconds / kShortest) * kPerDoubling);
    return static_cast<std::size_t>(std::min(position, static_cast<double>(kBuckets - 1)));
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  double total_ = 0;
};

}  // namespace stoker::farm
