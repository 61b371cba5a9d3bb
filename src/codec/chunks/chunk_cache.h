// A cache of decoded chunks with a memory limit, for readers that access rows in any order. A thread that
// requests a chunk while another thread decodes it waits for the result. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/thread.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::codec {

/// Uninitialized bytes on the heap.
class Buffer {
 public:
  Buffer() = default;
  /// Empty if the allocation fails; see bytes().size().
  explicit Buffer(std::size_t size);

  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

class ChunkCache {
 public:
  /// Chunks in use stay in memory beyond the limit.
  explicit ChunkCache(ByteCount limit) : limit_(limit.value) {}
  /// Applies from the next chunk on.
  void set_limit(ByteCount limit) { limit_.store(limit.value); }

  /// A chunk: the unique number of its array (see new_owner()), and the number of the chunk.
  struct Key {
    std::uint64_t owner = 0;
    std::uint64_t chunk = 0;
    bool operator==(const Key&) const = default;
  };
  /// Shared by the cache and the readers; immutable.
  using Chunk = std::shared_ptr<const Buffer>;
  using Load = std::function<Result<Buffer>()>;

  /// The chunk, from `load` if it is not cached. An error is returned to all waiting threads and is not
  /// cached.
  Result<Chunk> get(Key key, const Load& load) STOKER_EXCLUDES_LOCK(mutex_);
  /// Drops all chunks of an array.
  void evict(std::uint64_t owner) STOKER_EXCLUDES_LOCK(mutex_);

  /// A unique number for an array.
  std::uint64_t new_owner() { return owners_.fetch_add(1); }

  struct Counts {
    std::uint64_t hits = 0;
    std::uint64_t loads = 0;
    std::uint64_t bytes = 0;  ///< in the cache now
  };
  Counts counts() const STOKER_EXCLUDES_LOCK(mutex_);

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>((key.owner * 0x9E3779B97F4A7C15u) ^ (key.chunk * 0xC2B2AE3D27D4EB4Fu));
    }
  };
  struct Entry {
    Chunk chunk;  // null while it is being loaded
    std::list<Key>::iterator used;
  };
  void insert(Key key, const Chunk& chunk) STOKER_REQUIRES_LOCK(mutex_);
  void evict_to_limit() STOKER_REQUIRES_LOCK(mutex_);

  std::atomic<std::uint64_t> limit_;
  std::atomic<std::uint64_t> owners_{1};

  mutable Mutex mutex_;
  Condition loaded_;
  std::unordered_map<Key, Entry, KeyHash> entries_ STOKER_GUARDED_BY(mutex_);
  std::list<Key> used_ STOKER_GUARDED_BY(mutex_);  // loaded chunks, the most recently used first
  Counts counts_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::codec
