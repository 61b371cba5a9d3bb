// A cache of decoded images up to a budget, so that a small dataset is decoded once. Used by the loader's
// threads. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread.h"
#include "image/decode/image.h"
#include "stoker/bytes.h"

namespace stoker::loader {

/// Pixels by sample number. Nothing is evicted: a view is valid as long as the cache.
class PixelCache {
 public:
  /// `budget` includes pixels and bookkeeping; 0 disables the cache.
  PixelCache(std::uint64_t samples, ByteCount budget);

  /// Whether the budget allows any entry.
  bool is_enabled() const { return !entries_.empty(); }
  std::optional<image::ImageView> find(std::uint64_t sample) const;
  /// Copies the image into the cache, unless this exceeds the budget or memory is short.
  void insert(std::uint64_t sample, const image::ImageView& image) STOKER_EXCLUDES_LOCK(mutex_);
  ByteCount used() const STOKER_EXCLUDES_LOCK(mutex_);

 private:
  struct Entry {
    std::uint32_t width;
    std::uint32_t height;  // the pixels follow
  };
  std::byte* reserve(std::size_t size) STOKER_REQUIRES_LOCK(mutex_);

  const std::uint64_t budget_;
  std::vector<std::atomic<const Entry*>> entries_;  // set once, from null

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_ STOKER_GUARDED_BY(mutex_);
  std::byte* free_ STOKER_GUARDED_BY(mutex_) = nullptr;
  std::size_t free_size_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_ STOKER_GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::loader
