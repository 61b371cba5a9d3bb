// Whole shards in memory, read in blocks, so that small samples in random order cost no system call each and
// the storage sees few large reads. Where reads are quick, the first samples of a block are read alone: a
// loader that starts or resumes does not wait for megabytes. Used by the loader's threads. Thread-safe.
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

/// Seconds from which on a read did not come from memory.
inline constexpr double kSlowRead = 100e-6;

class ShardMemory {
 public:
  /// Reserves address space for all shards of the split; nothing is read yet. Null when together they are
  /// larger than `budget`, or address space is short. `source` must outlive the result.
  static std::unique_ptr<ShardMemory> create(const formats::ShardSource& source, ByteCount budget);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  /// The bytes of the locator: in memory, valid as long as this object, or read into `alone`. Reads the
  /// blocks they lie in once it is worth it; waits while another thread does. Fails as ShardSource::read, and
  /// tries again on the next call.
  Result<std::span<const std::byte>> view(const formats::Locator& locator, std::vector<std::byte>& alone);
  /// The bytes of the locator if they are in memory already, else null: view() then says more.
  const std::byte* find(const formats::Locator& locator) const {
    const Shard& shard = shards_[locator.shard];
    if (locator.offset > shard.size || locator.length > shard.size - locator.offset) return nullptr;
    const std::size_t end = (locator.offset + locator.length + kBlock - 1) / kBlock;
    for (std::size_t block = locator.offset / kBlock; block < end; ++block) {
      if (shard.blocks[block].load(std::memory_order_acquire) != State::present) return nullptr;
    }
    return shard.begin + locator.offset;
  }
  /// A hint that the locator's bytes will be asked for soon.
  void expect(const formats::Locator& locator) const;

 private:
  // Large enough that a disk streams, small enough that the first sample does not wait long.
  static constexpr std::uint64_t kBlock = 1u << 20;
  enum class State : std::uint8_t { absent, loading, present };
  struct Shard {
    std::byte* begin = nullptr;
    std::uint64_t size = 0;
    std::vector<std::atomic<State>> blocks;
    std::vector<std::atomic<std::uint8_t>> touched;  // per block, samples that were read alone
  };
  explicit ShardMemory(const formats::ShardSource& source) : source_(source) {}
  Status load(std::uint32_t shard, std::size_t block);
  bool is_worth_reading(Shard& shard, std::size_t block);
  Result<std::span<const std::byte>> read_alone(const formats::Locator& locator,
                                                std::vector<std::byte>& alone);

  const formats::ShardSource& source_;
  std::vector<Shard> shards_;
  std::atomic<bool> is_slow_{false};  // a small read took long
};

}  // namespace stoker::data
