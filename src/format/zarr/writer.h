// Writes a Zarr array block by block: the rows of one stored object (a chunk or a shard) along the first
// dimension at a time, in any order, from any number of threads or processes; what was written before is
// known by its files. Used by pack and convert. Thread-safe. Layout: docs/formats/zarr.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// What an array shall be. The rest has one good answer.
struct ZarrSpec {
  int version = 3;
  Extents shape;
  Extents chunks;  ///< what is decoded at once
  Extents shards;  ///< of a stored object, multiples of `chunks`; empty: no shards (version 3 only)
  ElementType type;
  ByteOrder order = ByteOrder::little;
  bool is_column_major = false;  ///< dimensions stored in reverse: order F
  std::vector<BytesCodec> codecs = {{.kind = BytesCodec::Kind::zstd, .level = 3}};
  std::vector<std::byte> fill;               ///< one element; empty: zero
  std::vector<std::string> dimension_names;  ///< empty, or one for each
  std::string attributes = "{}";             ///< a JSON object
};

/// The metadata of such an array. Invalid for what does not fit together.
Result<ZarrMetadata> zarr_metadata(const ZarrSpec& spec);

/// Chunk sizes with about `bytes` in a chunk and whole rows where a row is smaller: how many rows, and all
/// else whole.
Extents chunks_of(std::span<const std::uint64_t> shape, std::uint64_t element_bytes, ByteCount bytes);

class ZarrWriter {
 public:
  enum class Existing { refuse, go_on };
  /// Begins an array in `folder`, or goes on with one that was begun with the same metadata. Exists if an
  /// array was finished there (or begun, with `refuse`), Invalid if what was begun there is another one.
  static Result<ZarrWriter> create(const Path& folder, ZarrMetadata metadata, Existing existing);

  const ZarrMetadata& metadata() const { return metadata_; }
  /// Blocks along the first dimension, and the rows of all but the last.
  std::uint64_t blocks() const;
  std::uint64_t rows_per_block() const { return metadata_.shape.empty() ? 1 : metadata_.chunks[0]; }
  /// The rows of that block.
  std::uint64_t rows_of(std::uint64_t block) const;

  /// Whether all of its files are there. Blocks on the storage.
  bool has_block(std::uint64_t block) const;
  /// Packs the rows of one block, C order, on up to `threads` threads and puts each stored object in place by
  /// rename.
  Status write_block(std::uint64_t block, std::span<const std::byte> rows, std::size_t threads = 1) const;
  /// Publishes the array. Invalid "<folder>: block 3 of 7 was not written" if one is missing.
  Status finish() const;

 private:
  ZarrWriter(Path folder, ZarrMetadata metadata)
      : folder_(std::move(folder)), metadata_(std::move(metadata)) {}
  Result<std::string> encode_object(std::span<const std::byte> rows, std::span<const std::uint64_t> at,
                                    std::size_t threads) const;
  std::vector<Extents> objects_of(std::uint64_t block) const;

  Path folder_;
  ZarrMetadata metadata_;
};

}  // namespace stoker::formats
