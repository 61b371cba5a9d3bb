// Counts images in shards whose names have a number after their first dot. WebDataset's key ends at that dot,
// so that 22.00.png and 22.01.png are one sample, which is rarely meant: components are not named by numbers,
// but frames, versions, dates and times are. Used when shards are indexed, converted and checked.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker::sources {

class MergedNames {
 public:
  /// Adds a sample with files of these extensions.
  void add(std::string_view key, std::span<const std::string_view> extensions);
  /// The note about them, or "".
  std::string note() const;

 private:
  std::uint64_t samples_ = 0;  // with several such images
  std::uint64_t images_ = 0;   // in these samples
  std::uint64_t single_ = 0;   // in other samples
  std::string key_;            // of the first
  std::string first_, second_;
};

}  // namespace stoker::sources
