// Reads the files that a loader's thread needs next, from the shards in memory or from storage. Adjacent
// files are read together, and slow storage receives prefetch hints. Each thread has one. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataset/shard_source.h"
#include "loader/shard_memory.h"
#include "stoker/status.h"

namespace stoker::loader {

class Fetcher {
 public:
  /// Both must outlive it. Without `memory`, everything is read from `source`.
  Fetcher(const dataset::ShardSource& source, ShardMemory* memory) : source_(source), memory_(memory) {}

  /// The files of the next view() and copy() calls. None is longer than its shard (others fail when read).
  void begin(std::span<const dataset::Locator> files);
  /// Indexes of those files in the order of reading, each once.
  std::span<const std::uint32_t> order() const { return order_; }
  /// Bytes of the file that is `place`-th in order(), valid until the next call. Fails as ShardSource::read.
  Result<std::span<const std::byte>> view(std::size_t place);
  /// The same, copied to `out`, which is as long as the file.
  Status copy(std::size_t place, std::span<std::byte> out);
  /// Calls of ShardSource::read so far.
  std::uint64_t reads() const { return reads_; }

 private:
  // Files of order() that are read together: [begin, end), and the byte range of all of them.
  struct Run {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  bool fits(const Run& run, const dataset::Locator& file) const;
  const Run& run_of(std::size_t place);
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out);

  const dataset::ShardSource& source_;
  ShardMemory* const memory_;
  std::vector<dataset::Locator> files_;
  std::vector<std::uint32_t> order_;
  std::vector<Run> runs_;
  std::size_t run_ = 0;        // the run of the last read
  bool is_in_buffer_ = false;  // the bytes of that run
  std::vector<std::byte> buffer_;
  bool is_slow_ = false;  // the last read from storage was slow
  std::uint64_t reads_ = 0;
};

}  // namespace stoker::loader
