// Reads decompressed bytes of a chunked shard. Each chunk is read and decompressed once and kept in a cache,
// which several shards share. Thread-safe: any number of threads may read at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "codec/chunks/chunk_cache.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/shard_file.h"
#include "stoker/status.h"

namespace stoker::codec {

class ChunkReader {
 public:
  /// What to cache of a chunk of records: only the requested member, or whole records, which are decompressed
  /// once for all members.
  enum class CacheContent { member, records };
  /// `map` must outlive it. `subject` starts every error text: the shard's name.
  ChunkReader(const ChunkMap& map, std::shared_ptr<ChunkCache> cache, std::string subject,
              CacheContent keep = CacheContent::member);
  ~ChunkReader();
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  /// Reads decompressed bytes from `offset` of the shard `file`. Corrupt, naming array and chunk, for a chunk
  /// that does not decompress to its expected size, and beyond the end.
  Status read(const ShardFile& file, std::uint64_t offset, std::span<std::byte> out) const;
  /// Lets slow storage prefetch the bytes for the same read().
  void will_need(const ShardFile& file, std::uint64_t offset, std::uint64_t length) const;

 private:
  using Array = ChunkMap::Array;
  struct Box {
    Extents begin;
    Extents size;
  };
  template <typename Visit>
  static Status for_each_chunk(const Array& array, const Box& box, const Visit& visit);
  Result<ChunkCache::Chunk> chunk(const ShardFile& file, std::size_t array, std::uint64_t number) const;
  bool holds_records(const Array& array) const { return array.record && keep_ == CacheContent::records; }
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
  const CacheContent keep_;
};

}  // namespace stoker::codec
