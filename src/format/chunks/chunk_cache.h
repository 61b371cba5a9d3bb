// Decoded chunks kept in memory up to a limit, for readers that ask for rows in any order: whoever asks for a
// chunk that another thread is decoding waits for that one. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/bytes.h"
#include "base/status.h"
#include "base/thread.h"

namespace stoker::formats {

/// Bytes on the heap that nobody cleared first.
class Buffer {
 public:
  Buffer() = default;
  /// Empty if there is no memory for so many bytes; see bytes().size().
  explicit Buffer(std::size_t size);

  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

class ChunkCache {
 public:
  /// Chunks that somebody reads stay beyond the limit.
  explicit ChunkCache(ByteCount limit) : limit_(limit.value) {}
  /// From the next chunk on.
  void set_limit(ByteCount limit) { limit_.store(limit.value); }

  /// Which chunk: a number that its array alone has (see new_owner()), and the chunk's own.
  struct Key {
    std::uint64_t owner = 0;
    std::uint64_t chunk = 0;
    bool operator==(const Key&) const = default;
  };
  /// Shared by the cache and those who read the chunk; nobody changes it any more.
  using Chunk = std::shared_ptr<const Buffer>;
  using Load = std::function<Result<Buffer>()>;

  /// The chunk, from `load` if it is not held. An error is told to all who wait for it and is not kept.
  Result<Chunk> get(Key key, const Load& load) EXCLUDES_LOCK(mutex_);
  /// Drops what an array has that goes away.
  void forget(std::uint64_t owner) EXCLUDES_LOCK(mutex_);

  /// A number for one array.
  std::uint64_t new_owner() { return owners_.fetch_add(1); }

  struct Counts {
    std::uint64_t hits = 0;
    std::uint64_t loads = 0;
    std::uint64_t bytes = 0;  ///< held now
  };
  Counts counts() const EXCLUDES_LOCK(mutex_);

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>((key.owner * 0x9E3779B97F4A7C15u) ^ (key.chunk * 0xC2B2AE3D27D4EB4Fu));
    }
  };
  struct Entry {
    Chunk chunk;  // none while it is being loaded
    std::list<Key>::iterator used;
  };
  void keep(Key key, const Chunk& chunk) REQUIRES_LOCK(mutex_);
  void make_room() REQUIRES_LOCK(mutex_);

  std::atomic<std::uint64_t> limit_;
  std::atomic<std::uint64_t> owners_{1};

  mutable Mutex mutex_;
  Condition loaded_;
  std::unordered_map<Key, Entry, KeyHash> entries_ GUARDED_BY(mutex_);
  std::list<Key> used_ GUARDED_BY(mutex_);  // of chunks that are there; the latest first
  Counts counts_ GUARDED_BY(mutex_);
};

}  // namespace stoker::formats
