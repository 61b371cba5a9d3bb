#include "codec/chunks/chunk_cache.h"

#include <new>
#include <utility>

namespace stoker::codec {

namespace {

// Bookkeeping per entry, so that empty chunks are limited too.
constexpr std::uint64_t kEntryBytes = 160;

std::uint64_t entry_cost(const Buffer& chunk) { return chunk.bytes().size() + kEntryBytes; }

}  // namespace

Buffer::Buffer(std::size_t size) : data_(new(std::nothrow) std::byte[size]), size_(data_ ? size : 0) {}

Result<ChunkCache::Chunk> ChunkCache::get(Key key, const Load& load) {
  {
    MutexLock lock(mutex_);
    for (;;) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) break;
      if (found->second.chunk) {
        ++counts_.hits;
        used_.splice(used_.begin(), used_, found->second.used);
        return found->second.chunk;
      }
      loaded_.wait(mutex_, Deadline::never());  // bounded by the other thread's file read
    }
    entries_.emplace(key, Entry{nullptr, used_.end()});
    ++counts_.loads;
  }
  Result<Buffer> buffer = load();
  MutexLock lock(mutex_);
  loaded_.notify_all();
  if (!buffer.ok()) {
    entries_.erase(key);  // waiting threads find no entry and load it themselves
    return std::move(buffer).error();
  }
  auto chunk = std::make_shared<const Buffer>(std::move(*buffer));
  insert(key, chunk);
  return Chunk(std::move(chunk));
}

void ChunkCache::insert(Key key, const Chunk& chunk) {
  counts_.bytes += entry_cost(*chunk);
  used_.push_front(key);
  entries_[key] = Entry{chunk, used_.begin()};
  evict_to_limit();
}

void ChunkCache::evict_to_limit() {
  auto at = used_.end();
  while (counts_.bytes > limit_ && at != used_.begin()) {
    --at;
    const auto entry = entries_.find(*at);
    // Dropping a chunk in use frees no memory, and the next reader would decode it anew.
    if (entry->second.chunk.use_count() > 1) continue;
    counts_.bytes -= entry_cost(*entry->second.chunk);
    entries_.erase(entry);
    at = used_.erase(at);
  }
}

void ChunkCache::evict(std::uint64_t owner) {
  MutexLock lock(mutex_);
  for (auto at = used_.begin(); at != used_.end();) {
    if (at->owner != owner) {
      ++at;
      continue;
    }
    const auto entry = entries_.find(*at);
    counts_.bytes -= entry_cost(*entry->second.chunk);
    entries_.erase(entry);
    at = used_.erase(at);
  }
}

ChunkCache::Counts ChunkCache::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace stoker::codec
