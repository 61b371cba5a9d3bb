// Reads a Zarr array: any region, or rows along its first dimension, through a cache of decoded chunks. Used
// by the loader, by convert and to show a dataset. Thread-safe: const calls may run on any number of threads
// at once. Layout: docs/formats/zarr.md.
//
// Why our own reader: the C++ libraries for Zarr (tensorstore, z5) add tens of megabytes or a build system of
// their authors, and none reports the byte range of a stored chunk. The side index needs these ranges to read
// samples in place without metadata requests. The codecs are shared with HDF5 and Parquet in the room codec.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "arrays/zarr/files.h"
#include "arrays/zarr/metadata.h"
#include "codec/chunks/chunk_cache.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/value_array.h"
#include "stoker/status.h"

namespace stoker::arrays {

class ZarrArray {
 public:
  /// Reads the metadata of the array at `path` of a store ("" if the folder itself is the array). `cache`
  /// may be shared with other arrays; by default the array has a separate cache of 256 MiB.
  static Result<std::unique_ptr<ZarrArray>> open(const Path& store, std::string_view path,
                                                 std::shared_ptr<codec::ChunkCache> cache = nullptr);
  static Result<std::unique_ptr<ZarrArray>> open(std::shared_ptr<const ZarrFiles> files,
                                                 std::string_view path,
                                                 std::shared_ptr<codec::ChunkCache> cache = nullptr);
  ~ZarrArray();
  ZarrArray(const ZarrArray&) = delete;
  ZarrArray& operator=(const ZarrArray&) = delete;

  const ZarrMetadata& metadata() const { return metadata_; }
  /// Size of the first dimension; 1 for an array without dimensions.
  std::uint64_t rows() const { return metadata_.shape.empty() ? 1 : metadata_.shape[0]; }
  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Rows in the same chunks: reading them together decodes nothing twice.
  std::uint64_t rows_per_chunk() const { return metadata_.shape.empty() ? 1 : metadata_.inner_chunks()[0]; }

  /// Reads the elements [begin[d], begin[d] + size[d]) of each dimension, in C order and native byte order.
  /// Invalid outside the shape. A missing chunk reads as the fill value. REQUIRES: `out` has exactly that
  /// many bytes.
  Status read(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> size,
              std::span<std::byte> out) const;
  /// The file range with all elements in the order of reading: an uncompressed array of bytes or
  /// little-endian numbers, in one stored object. Invalid, with the reason, for any other array.
  Result<ZarrFiles::Piece> contiguous_piece() const;
  /// The chunks in the file of the store, and their codecs. Invalid, with the reason, for a store of many
  /// files.
  Result<codec::ChunkedArray> chunked() const;
  /// Locates variable-length values in the unpacked chunks, and unpacks each chunk once for this. Invalid
  /// for other arrays and for a chunk over 1 GiB, Corrupt for invalid lengths.
  Result<codec::ValueArray> values() const;
  /// Reads `count` rows from `first` on; `out` is count x row_bytes(). Invalid for variable-length values.
  Status read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  /// Reads these rows, in this order. Each chunk is read once, whatever the order.
  Status read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const;

 private:
  ZarrArray(std::shared_ptr<const ZarrFiles> files, std::string_view path, ZarrMetadata metadata,
            std::shared_ptr<codec::ChunkCache> cache);

  struct Box;
  Status check_elements() const;
  Result<codec::ChunkCache::Chunk> chunk(std::span<const std::uint64_t> at) const;
  Result<codec::Buffer> load_object(std::span<const std::uint64_t> at) const;
  Result<codec::Buffer> load_from_shard(std::span<const std::uint64_t> at) const;
  Result<codec::Buffer> load_shard_index(std::span<const std::uint64_t> shard) const;
  Status locate_chunks(codec::ChunkedArray& array) const;
  Status locate_shard_chunks(std::span<const std::uint64_t> at, const ZarrFiles::Piece& piece,
                             codec::ChunkedArray& array) const;
  std::string object_key(std::span<const std::uint64_t> at) const;
  Status copy_part(const Box& box, std::span<const std::uint64_t> at, std::span<std::byte> out) const;

  const std::shared_ptr<const ZarrFiles> files_;  // shared with other arrays of the store
  const std::string path_;
  const ZarrMetadata metadata_;
  std::uint64_t row_bytes_ = 0;
  codec::Extents counts_;         // chunks along each dimension, with whole edge shards
  codec::Extents chunk_strides_;  // of a dense chunk, in bytes
  codec::Extents no_strides_;     // zeros: the fill value is one element
  // Shared with other arrays of the same dataset.
  std::shared_ptr<codec::ChunkCache> cache_;
  std::uint64_t owner_ = 0;        // of chunks in the cache
  std::uint64_t index_owner_ = 0;  // of shard indexes there
};

}  // namespace stoker::arrays
