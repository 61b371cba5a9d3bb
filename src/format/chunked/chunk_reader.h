// Unpacked bytes of a shard that is packed in chunks: each chunk is read and unpacked once and kept in a
// cache, which several shards share. Thread-safe: any number of threads may read at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/chunked/shard_file.h"
#include "format/chunks/chunk_cache.h"

namespace stoker::formats {

class ChunkReader {
 public:
  /// What is kept of a chunk of records: the member that is read, for those who read one; or all of it, which
  /// is unpacked once for all members.
  enum class Keep { member, records };
  /// `map` must outlive it. `subject` starts every error text: the shard's name.
  ChunkReader(const ChunkMap& map, std::shared_ptr<ChunkCache> cache, std::string subject,
              Keep keep = Keep::member);
  ~ChunkReader();
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  /// Unpacked bytes from `offset` on. Corrupt, naming array and chunk, for what does not unpack to what it
  /// should, and beyond the end. `file` is the shard.
  Status read(const ShardFile& file, std::uint64_t offset, std::span<std::byte> out) const;
  /// Tells slow storage what read() of the same will need.
  void will_need(const ShardFile& file, std::uint64_t offset, std::uint64_t length) const;

 private:
  using Array = ChunkMap::Array;
  struct Box {
    Extents begin;
    Extents size;
  };
  template <typename Take>
  static Status for_chunks_of(const Array& array, const Box& box, const Take& take);
  Result<ChunkCache::Chunk> chunk(const ShardFile& file, std::size_t array, std::uint64_t number) const;
  bool holds_records(const Array& array) const { return array.record && keep_ == Keep::records; }
  Result<Buffer> load(const ShardFile& file, const Array& array, std::uint64_t number) const;
  Status read_pages(const ShardFile& file, std::size_t array, std::uint64_t at,
                    std::span<std::byte> out) const;
  Status read_elements(const ShardFile& file, std::size_t array, std::uint64_t at,
                       std::span<std::byte> out) const;
  Status read_rows(const ShardFile& file, std::size_t array, std::uint64_t at,
                   std::span<std::byte> out) const;
  Status read_row(const ShardFile& file, std::size_t array, std::uint64_t row,
                  std::span<std::byte> out) const;
  Status read_box(const ShardFile& file, std::size_t array, const Box& box, std::span<std::byte> out) const;

  const ChunkMap& map_;
  const std::shared_ptr<ChunkCache> cache_;  // shared with the readers of other shards
  const std::string subject_;
  const std::uint64_t owner_;
  const Keep keep_;
};

}  // namespace stoker::formats
