// Notices when a training can start while the rest of its dataset is still copied. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/thread.h"

namespace stoker::stage {

/// Shards are numbered in the order in which the training needs them.
class FirstShards {
 public:
  /// `then` is called once, from any thread, when the first 2 % of the bytes are settled and the cached
  /// shards are checked. Without `then`, nothing happens.
  FirstShards(const std::vector<std::uint64_t>& bytes, std::function<void()> then);

  /// The number of the first shards.
  std::size_t count() const { return count_; }
  /// Whether ranks still wait for them.
  bool is_awaited() const;
  /// The shard is in the cache, or stays at the source.
  void settled(std::size_t shard);
  /// No reader gets a damaged shard of the cache any more.
  void cache_checked();

 private:
  void call_if_ready();

  std::size_t count_ = 0;
  mutable Mutex mutex_;
  std::function<void()> then_ STOKER_GUARDED_BY(mutex_);
  std::vector<bool> is_open_ STOKER_GUARDED_BY(mutex_);  // of the first shards
  std::size_t open_ STOKER_GUARDED_BY(mutex_) = 0;
  bool is_cache_checked_ STOKER_GUARDED_BY(mutex_) = false;
};

}  // namespace stoker::stage
