// Writes a Zarr array block by block: one row of stored objects (chunks or shards) along the first dimension
// at a time, in any order, from any number of threads or processes. Finished blocks are recognised by their
// files. Used by pack and convert. Thread-safe. Layout: docs/formats/zarr.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arrays/zarr/metadata.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// The properties of a new array. The rest has one good answer.
struct ZarrSpec {
  int version = 3;
  codec::Extents shape;
  codec::Extents chunks;  ///< shape of the unit of decoding
  codec::Extents
      shards;  ///< shape of a stored object, multiples of `chunks`; empty: no shards (version 3 only)
  codec::ElementType type;
  codec::ByteOrder order = codec::ByteOrder::little;
  bool is_column_major = false;  ///< dimensions stored in reverse: order F
  std::vector<BytesCodec> codecs = {{.kind = BytesCodec::Kind::zstd, .level = 3}};
  std::vector<std::byte> fill;               ///< one element; empty: zero
  std::vector<std::string> dimension_names;  ///< empty, or one for each
  std::string attributes = "{}";             ///< a JSON object
};

/// The metadata of such an array. Invalid for inconsistent properties.
Result<ZarrMetadata> zarr_metadata(const ZarrSpec& spec);

/// A chunk shape of about `bytes` per chunk, with whole rows if a row is smaller.
codec::Extents choose_chunk_shape(std::span<const std::uint64_t> shape, std::uint64_t element_bytes,
                                  ByteCount bytes);

class ZarrWriter {
 public:
  enum class Existing { fail, resume };
  /// Begins an array in `folder`, or resumes one with the same metadata. Exists if an array was finished
  /// there (or begun, with `fail`), Invalid if a different array was begun there.
  static Result<ZarrWriter> create(const Path& folder, ZarrMetadata metadata, Existing existing);

  const ZarrMetadata& metadata() const { return metadata_; }
  /// Blocks along the first dimension, and the rows of all but the last.
  std::uint64_t blocks() const;
  std::uint64_t rows_per_block() const { return metadata_.shape.empty() ? 1 : metadata_.chunks[0]; }
  /// The rows of a block.
  std::uint64_t rows_of(std::uint64_t block) const;

  /// Whether all files of the block exist. Blocks on the storage.
  bool has_block(std::uint64_t block) const;
  /// Encodes the rows of one block, C order, on up to `threads` threads and publishes each stored object by
  /// rename.
  Status write_block(std::uint64_t block, std::span<const std::byte> rows, std::size_t threads = 1) const;
  /// Publishes the array. Invalid "<folder>: block 3 of 7 was not written" if one is missing.
  Status finish() const;

 private:
  ZarrWriter(Path folder, ZarrMetadata metadata)
      : folder_(std::move(folder)), metadata_(std::move(metadata)) {}
  Result<std::string> encode_object(std::span<const std::byte> rows, std::span<const std::uint64_t> at,
                                    std::size_t threads) const;
  std::vector<codec::Extents> objects_of(std::uint64_t block) const;

  Path folder_;
  ZarrMetadata metadata_;
};

}  // namespace stoker::arrays
