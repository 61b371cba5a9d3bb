// The bytes of the files that a loader's thread is to read next: from the shards in memory, or from the
// storage, where files that lie close to each other are read at once, and slow storage is told ahead what
// will be read. Each thread has one. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/loader/shard_memory.h"
#include "format/shard_source.h"

namespace stoker::data {

class Fetcher {
 public:
  /// Both must outlive it; without `memory` everything is read from `source`.
  Fetcher(const formats::ShardSource& source, ShardMemory* memory) : source_(source), memory_(memory) {}

  /// The files that will be asked for. None is longer than its shard (others fail when asked for).
  void begin(std::span<const formats::Locator> files);
  /// The numbers of those files in the order in which to ask for them: each once.
  std::span<const std::uint32_t> order() const { return order_; }
  /// Bytes of the file that is `place`-th in order(), valid until the next call. Fails as ShardSource::read.
  Result<std::span<const std::byte>> view(std::size_t place);
  /// The same, written to `out`, which is as long as the file.
  Status copy(std::size_t place, std::span<std::byte> out);
  /// Calls of ShardSource::read since it was made.
  std::uint64_t reads() const { return reads_; }

 private:
  // Files of order() that are read at once: [begin, end), and the bytes from the first to the last of them.
  struct Run {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  bool fits(const Run& run, const formats::Locator& file) const;
  const Run& run_of(std::size_t place);
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out);

  const formats::ShardSource& source_;
  ShardMemory* const memory_;
  std::vector<formats::Locator> files_;
  std::vector<std::uint32_t> order_;
  std::vector<Run> runs_;
  std::size_t run_ = 0;        // the one that was asked for last
  bool is_in_buffer_ = false;  // that run's bytes
  std::vector<std::byte> buffer_;
  bool is_slow_ = false;  // the last read from the storage took long
  std::uint64_t reads_ = 0;
};

}  // namespace stoker::data
