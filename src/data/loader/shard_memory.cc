#include "data/loader/shard_memory.h"

#include <algorithm>
#include <sys/mman.h>

#include "base/stopwatch.h"

namespace stoker::data {
namespace {

// Samples of a block that are read alone where reads are quick. A block costs as much as some hundred of
// them.
constexpr std::uint8_t kPatience = 16;
// A read from the page cache takes microseconds, one from storage at least this.
constexpr std::uint64_t kCacheLine = 64;

}  // namespace

std::unique_ptr<ShardMemory> ShardMemory::create(const formats::ShardSource& source, ByteCount budget) {
  const std::vector<const formats::IndexSection*>& shards = source.samples().sections();
  std::uint64_t left = budget.value;
  for (const formats::IndexSection* shard : shards) {
    if (shard->reach() > left) return nullptr;
    left -= shard->reach();
  }
  std::unique_ptr<ShardMemory> memory(new ShardMemory(source));
  memory->shards_ = std::vector<Shard>(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Shard& shard = memory->shards_[i];
    const std::uint64_t size = shards[i]->reach();
    if (size == 0) continue;
    // Pages take memory when they are first written.
    void* begin =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    shard.begin = static_cast<std::byte*>(begin);
    shard.size = size;
    shard.blocks = std::vector<std::atomic<State>>((size + kBlock - 1) / kBlock);
    shard.touched = std::vector<std::atomic<std::uint8_t>>(shard.blocks.size());
    // Fewer page faults and misses of the address cache; where the kernel has no huge pages it says so, and
    // nothing changes.
    ::madvise(begin, size, MADV_HUGEPAGE);
  }
  return memory;
}

ShardMemory::~ShardMemory() {
  for (const Shard& shard : shards_) {
    if (shard.begin) ::munmap(shard.begin, shard.size);
  }
}

Result<std::span<const std::byte>> ShardMemory::view(const formats::Locator& locator,
                                                     std::vector<std::byte>& alone) {
  Shard& shard = shards_[locator.shard];
  if (locator.offset > shard.size || locator.length > shard.size - locator.offset) {
    return corrupt("{}: the index leads beyond its end", source_.split().shards[locator.shard].file);
  }
  const std::size_t end = (locator.offset + locator.length + kBlock - 1) / kBlock;
  for (std::size_t block = locator.offset / kBlock; block < end; ++block) {
    if (shard.blocks[block].load(std::memory_order_acquire) == State::present) continue;
    // Of a block that cannot be read, perhaps only another file is damaged.
    if (!is_worth_reading(shard, block) || !load(locator.shard, block).ok())
      return read_alone(locator, alone);
  }
  return std::span<const std::byte>(shard.begin + locator.offset, locator.length);
}

void ShardMemory::expect(const formats::Locator& locator) const {
  const Shard& shard = shards_[locator.shard];
  if (locator.offset >= shard.size) return;
  const std::size_t block = locator.offset / kBlock;
  if (shard.blocks[block].load(std::memory_order_relaxed) != State::present) return;
  // All of a thumbnail. Of a larger file the processor fetches the rest by itself once it sees lines in a
  // row.
  const std::uint64_t most = std::min({locator.length, shard.size - locator.offset, 16 * kCacheLine});
  for (std::uint64_t i = 0; i < most; i += kCacheLine) __builtin_prefetch(shard.begin + locator.offset + i);
}

bool ShardMemory::is_worth_reading(Shard& shard, std::size_t block) {
  if (is_slow_.load(std::memory_order_relaxed)) return true;
  std::atomic<std::uint8_t>& touched = shard.touched[block];
  if (touched.load(std::memory_order_relaxed) >= kPatience) return true;
  touched.fetch_add(1, std::memory_order_relaxed);
  return false;
}

Result<std::span<const std::byte>> ShardMemory::read_alone(const formats::Locator& locator,
                                                           std::vector<std::byte>& alone) {
  alone.resize(locator.length);
  const Stopwatch watch;
  RETURN_IF_ERROR(source_.read(locator.shard, locator.offset, alone));
  if (watch.seconds() > kSlowRead) is_slow_.store(true, std::memory_order_relaxed);
  return std::span<const std::byte>(alone);
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

}  // namespace stoker::data
