// Whole shards in memory, read in blocks when first touched, so that small samples in random order cost no
// system call each and the storage sees few large reads. Used by the loader's threads. Thread-safe.
//
// The memory is anonymous, not a map of the file: a shard that is cut short or an I/O error is an error with
// a name, not a SIGBUS.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "format/shard_source.h"

namespace stoker::data {

class ShardMemory {
 public:
  /// Reserves address space for all shards of the split; nothing is read yet. Null when together they are
  /// larger than `budget`, or address space is short. `source` must outlive the result.
  static std::unique_ptr<ShardMemory> create(const formats::ShardSource& source, ByteCount budget);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  /// The bytes of the locator, valid as long as this object. Reads the blocks they lie in unless that was
  /// done; waits while another thread does. Fails as ShardSource::read, and tries again on the next call.
  Result<std::span<const std::byte>> view(const formats::Locator& locator);

 private:
  enum class State : std::uint8_t { absent, loading, present };
  struct Shard {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::vector<std::atomic<State>> blocks;
  };
  explicit ShardMemory(const formats::ShardSource& source) : source_(source) {}
  Status load(std::uint32_t shard, std::size_t block);

  const formats::ShardSource& source_;
  std::vector<Shard> shards_;
};

}  // namespace stoker::data
