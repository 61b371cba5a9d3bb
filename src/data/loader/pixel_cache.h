// Decoded images kept in memory until a budget is used up, so that a small dataset is decoded once. Used by
// the loader's threads. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/thread.h"
#include "data/decode/image.h"

namespace stoker::data {

/// Pixels by sample number. What is in stays in: a view is valid as long as the cache.
class PixelCache {
 public:
  /// `budget` counts pixels and bookkeeping; 0 keeps nothing.
  PixelCache(std::uint64_t samples, ByteCount budget);

  /// Whether it keeps anything at all.
  bool is_on() const { return !entries_.empty(); }
  std::optional<ImageView> find(std::uint64_t sample) const;
  /// Copies the image in, unless it would go over the budget or memory is short.
  void keep(std::uint64_t sample, const ImageView& image) EXCLUDES_LOCK(mutex_);
  ByteCount used() const EXCLUDES_LOCK(mutex_);

 private:
  struct Entry {
    std::uint32_t width;
    std::uint32_t height;  // the pixels follow
  };
  std::byte* reserve(std::size_t size) REQUIRES_LOCK(mutex_);

  const std::uint64_t budget_;
  std::vector<std::atomic<const Entry*>> entries_;  // set once, from null

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_ GUARDED_BY(mutex_);
  std::byte* free_ GUARDED_BY(mutex_) = nullptr;
  std::size_t free_size_ GUARDED_BY(mutex_) = 0;
  std::uint64_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::data
