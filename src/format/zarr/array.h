// A Zarr array that is read: any box of it, or rows along its first dimension, through a cache of decoded
// chunks. Used by the loader, by convert and by whatever shows a dataset. Thread-safe: every const call may
// run on any number of threads at once. Layout: docs/formats/zarr.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/chunked/value_array.h"
#include "format/chunks/chunk_cache.h"
#include "format/zarr/files.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

class ZarrArray {
 public:
  /// Reads the metadata of the array at `path` of a store ("" if the folder itself is the array). Chunks go
  /// through `cache`, shared with other arrays perhaps; without one the array has its own of 256 MiB.
  static Result<std::unique_ptr<ZarrArray>> open(const Path& store, std::string_view path,
                                                 std::shared_ptr<ChunkCache> cache = nullptr);
  static Result<std::unique_ptr<ZarrArray>> open(std::shared_ptr<const ZarrFiles> files,
                                                 std::string_view path,
                                                 std::shared_ptr<ChunkCache> cache = nullptr);
  ~ZarrArray();
  ZarrArray(const ZarrArray&) = delete;
  ZarrArray& operator=(const ZarrArray&) = delete;

  const ZarrMetadata& metadata() const { return metadata_; }
  /// Size of the first dimension; 1 for an array without dimensions.
  std::uint64_t rows() const { return metadata_.shape.empty() ? 1 : metadata_.shape[0]; }
  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Rows that lie in the same chunks: reading them together decodes nothing twice.
  std::uint64_t rows_per_chunk() const { return metadata_.shape.empty() ? 1 : metadata_.inner_chunks()[0]; }

  /// The elements [begin[d], begin[d] + size[d]) of each dimension, in C order and this machine's byte order.
  /// Invalid outside the shape. REQUIRES: `out` exactly that many bytes. Where no chunk is stored the fill
  /// value is read.
  Status read(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> size,
              std::span<std::byte> out) const;
  /// Where in which file elements lie as they are read, one behind another from the first on: an array of
  /// bytes or little-endian numbers that nothing packs, in one stored object. Invalid, saying why, for any
  /// other.
  Result<ZarrFiles::Piece> run() const;
  /// Where its chunks lie in the file of the store, and how they are packed. Invalid, saying why, for a store
  /// of many files.
  Result<ChunkedArray> chunked() const;
  /// Of values of different lengths: where each lies in the streams of bytes that its chunks unpack to, which
  /// are unpacked once for that. Invalid for any but a list of them and for a chunk of over 1 GiB, Corrupt
  /// for lengths that do not fit.
  Result<ValueArray> values() const;
  /// `count` rows from `first` on; `out` is count x row_bytes(). Invalid of values of different lengths.
  Status read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  /// These rows, in this order. Each chunk is asked for once, however the rows lie.
  Status read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const;

 private:
  ZarrArray(std::shared_ptr<const ZarrFiles> files, std::string_view path, ZarrMetadata metadata,
            std::shared_ptr<ChunkCache> cache);

  struct Box;
  Status check_elements() const;
  Result<ChunkCache::Chunk> chunk(std::span<const std::uint64_t> at) const;
  Result<Buffer> load_object(std::span<const std::uint64_t> at) const;
  Result<Buffer> load_from_shard(std::span<const std::uint64_t> at) const;
  Result<Buffer> load_shard_index(std::span<const std::uint64_t> shard) const;
  Status place_chunks(ChunkedArray& array) const;
  Status place_shard(std::span<const std::uint64_t> at, const ZarrFiles::Piece& piece,
                     ChunkedArray& array) const;
  std::string object_key(std::span<const std::uint64_t> at) const;
  Status copy_part(const Box& box, std::span<const std::uint64_t> at, std::span<std::byte> out) const;

  const std::shared_ptr<const ZarrFiles> files_;  // shared with other arrays of the store
  const std::string path_;
  const ZarrMetadata metadata_;
  std::uint64_t row_bytes_ = 0;
  Extents counts_;         // chunks along each dimension, those of edge shards whole
  Extents chunk_strides_;  // of a dense chunk, in bytes
  Extents no_strides_;     // zeros: the fill value is one element
  // Shared with other arrays of the same dataset.
  std::shared_ptr<ChunkCache> cache_;
  std::uint64_t owner_ = 0;        // of chunks in the cache
  std::uint64_t index_owner_ = 0;  // of shard indexes there
};

}  // namespace stoker::formats
