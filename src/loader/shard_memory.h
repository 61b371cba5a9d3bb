// Whole shards in memory, read in blocks: small samples in random order then need no system call each, and
// the storage serves few large reads. If reads are quick, the first samples of a block are read
// individually, so that a loader that starts or resumes does not wait for megabytes. Used by the loader's
// threads. Thread-safe.
//
// The memory is anonymous, not a map of the file: a truncated shard or an I/O error is an error that names
// the shard, not a SIGBUS.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataset/shard_source.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::loader {

/// A read that takes longer, in seconds, was not served from memory.
inline constexpr double kSlowRead = 100e-6;

class ShardMemory {
 public:
  /// Reserves address space for all shards of the split; nothing is read yet. Null when together they are
  /// larger than `budget`, or address space is short. `source` must outlive the result.
  static std::unique_ptr<ShardMemory> create(const dataset::ShardSource& source, ByteCount budget);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  /// The bytes of the locator: in memory, valid as long as this object, or read into `buffer`. Loads their
  /// blocks once that pays off; waits while another thread does. Fails as ShardSource::read, and retries on
  /// the next call.
  Result<std::span<const std::byte>> view(const dataset::Locator& locator, std::vector<std::byte>& buffer);
  /// The bytes of the locator if they are in memory already, else null: use view().
  const std::byte* find(const dataset::Locator& locator) const {
    const Shard& shard = shards_[locator.shard];
    if (locator.offset > shard.size || locator.length > shard.size - locator.offset) return nullptr;
    const std::size_t end = (locator.offset + locator.length + kBlock - 1) / kBlock;
    for (std::size_t block = locator.offset / kBlock; block < end; ++block) {
      if (shard.blocks[block].load(std::memory_order_acquire) != State::present) return nullptr;
    }
    return shard.begin + locator.offset;
  }
  /// Hints that the locator's bytes will be needed soon.
  void prefetch(const dataset::Locator& locator) const;

 private:
  // Large enough for sequential disk speed, small enough that the first sample does not wait long.
  static constexpr std::uint64_t kBlock = 1u << 20;
  enum class State : std::uint8_t { absent, loading, present };
  struct Shard {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::vector<std::atomic<State>> blocks;
    std::vector<std::atomic<std::uint8_t>> touched;  // per block, samples that were read individually
  };
  explicit ShardMemory(const dataset::ShardSource& source) : source_(source) {}
  Status load(std::uint32_t shard, std::size_t block);
  bool should_load_block(Shard& shard, std::size_t block);
  Result<std::span<const std::byte>> read_single(const dataset::Locator& locator,
                                                 std::vector<std::byte>& buffer);

  const dataset::ShardSource& source_;
  std::vector<Shard> shards_;
  std::atomic<bool> is_slow_{false};  // a small read was slow
};

}  // namespace stoker::loader
