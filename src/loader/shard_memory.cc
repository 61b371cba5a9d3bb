#include "loader/shard_memory.h"

#include <algorithm>
#include <sys/mman.h>

#include "base/stopwatch.h"

namespace stoker::loader {
namespace {

// Samples of a block that are read individually if reads are quick. A block costs as much as a few hundred
// of them.
constexpr std::uint8_t kSingleReadsPerBlock = 16;
constexpr std::uint64_t kCacheLine = 64;

}  // namespace

std::unique_ptr<ShardMemory> ShardMemory::create(const dataset::ShardSource& source, ByteCount budget) {
  const std::vector<const dataset::IndexSection*>& shards = source.samples().sections();
  std::uint64_t left = budget.value;
  for (const dataset::IndexSection* shard : shards) {
    if (shard->offset_limit() > left) return nullptr;
    left -= shard->offset_limit();
  }
  std::unique_ptr<ShardMemory> memory(new ShardMemory(source));
  memory->shards_ = std::vector<Shard>(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Shard& shard = memory->shards_[i];
    const std::uint64_t size = shards[i]->offset_limit();
    if (size == 0) continue;
    // Pages are allocated at their first write.
    void* begin =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    shard.begin = static_cast<std::byte*>(begin);
    shard.size = size;
    shard.blocks = std::vector<std::atomic<State>>((size + kBlock - 1) / kBlock);
    shard.touched = std::vector<std::atomic<std::uint8_t>>(shard.blocks.size());
    // Reduces page faults and TLB misses. Without huge pages in the kernel, it fails and nothing changes.
    ::madvise(begin, size, MADV_HUGEPAGE);
  }
  return memory;
}

ShardMemory::~ShardMemory() {
  for (const Shard& shard : shards_) {
    if (shard.begin) ::munmap(shard.begin, shard.size);
  }
}

Result<std::span<const std::byte>> ShardMemory::view(const dataset::Locator& locator,
                                                     std::vector<std::byte>& buffer) {
  Shard& shard = shards_[locator.shard];
  if (locator.offset > shard.size || locator.length > shard.size - locator.offset) {
    return corrupt("{}: an offset of the index is beyond its end",
                   source_.split().shards[locator.shard].file);
  }
  const std::size_t end = (locator.offset + locator.length + kBlock - 1) / kBlock;
  for (std::size_t block = locator.offset / kBlock; block < end; ++block) {
    if (shard.blocks[block].load(std::memory_order_acquire) == State::present) continue;
    // If a block cannot be read, perhaps only a different file is damaged.
    if (!should_load_block(shard, block) || !load(locator.shard, block).ok())
      return read_single(locator, buffer);
  }
  return std::span<const std::byte>(shard.begin + locator.offset, locator.length);
}

void ShardMemory::prefetch(const dataset::Locator& locator) const {
  const Shard& shard = shards_[locator.shard];
  if (locator.offset >= shard.size) return;
  const std::size_t block = locator.offset / kBlock;
  if (shard.blocks[block].load(std::memory_order_relaxed) != State::present) return;
  // Prefetches all of a thumbnail. For a larger file, the processor fetches the rest after a few sequential
  // lines.
  const std::uint64_t most = std::min({locator.length, shard.size - locator.offset, 16 * kCacheLine});
  for (std::uint64_t i = 0; i < most; i += kCacheLine) __builtin_prefetch(shard.begin + locator.offset + i);
}

bool ShardMemory::should_load_block(Shard& shard, std::size_t block) {
  if (is_slow_.load(std::memory_order_relaxed)) return true;
  std::atomic<std::uint8_t>& touched = shard.touched[block];
  if (touched.load(std::memory_order_relaxed) >= kSingleReadsPerBlock) return true;
  touched.fetch_add(1, std::memory_order_relaxed);
  return false;
}

Result<std::span<const std::byte>> ShardMemory::read_single(const dataset::Locator& locator,
                                                            std::vector<std::byte>& buffer) {
  buffer.resize(locator.length);
  const Stopwatch watch;
  STOKER_RETURN_IF_ERROR(source_.read(locator.shard, locator.offset, buffer));
  if (watch.seconds() > kSlowRead) is_slow_.store(true, std::memory_order_relaxed);
  return std::span<const std::byte>(buffer);
}

Status ShardMemory::load(std::uint32_t number, std::size_t block) {
  Shard& shard = shards_[number];
  std::atomic<State>& state = shard.blocks[block];
  for (;;) {
    State expected = State::absent;
    if (state.compare_exchange_strong(expected, State::loading, std::memory_order_acquire)) break;
    if (expected == State::present) return Status();
    state.wait(State::loading, std::memory_order_acquire);
  }
  const std::uint64_t begin = block * kBlock;
  const std::uint64_t size = std::min(kBlock, shard.size - begin);
  Status status = source_.read(number, begin, {shard.begin + begin, size});
  state.store(status.ok() ? State::present : State::absent, std::memory_order_release);
  state.notify_all();
  return status;
}

}  // namespace stoker::loader
