// What .zarray (Zarr version 2) and zarr.json (version 3) say of an array, read strictly and written
// canonically. Whatever comes out of a parse is consistent: no chunk is empty, no product of sizes overflows,
// and every codec is one that can be undone. Thread-safe: no state. Layout: docs/formats/zarr.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/chunks/box.h"
#include "format/zarr/data_type.h"

namespace stoker::formats {

/// A codec that turns bytes into bytes.
struct BytesCodec {
  enum class Kind { blosc, zstd, gzip, zlib, lz4, shuffle, crc32c };
  /// Of blosc: what is done with the bytes of elements before they are compressed.
  enum class Shuffle { none, bytes, bits };

  Kind kind = Kind::zstd;
  int level = 0;
  bool has_checksum = false;        ///< zstd
  bool is_crc_first = false;        ///< crc32c: before the bytes that it is of, as numcodecs can have it
  std::string compressor = "lz4";   ///< blosc: blosclz, lz4, lz4hc, snappy, zlib, zstd
  Shuffle shuffle = Shuffle::none;  ///< blosc
  std::uint32_t element_bytes = 1;  ///< blosc, shuffle
  std::uint64_t block_bytes = 0;    ///< blosc: 0 for its own choice

  bool operator==(const BytesCodec&) const = default;
};
std::string_view to_text(BytesCodec::Kind kind);

/// How the elements of one chunk become stored bytes, in the order of encoding.
struct Pipeline {
  /// Dimension i of what is stored is the array's dimension axes[i]. Empty: as they are.
  std::vector<std::size_t> axes;
  ByteOrder order = ByteOrder::little;
  /// At most one of them compresses, so that the size before it is always known.
  std::vector<BytesCodec> codecs;

  bool operator==(const Pipeline&) const = default;
};

/// The codec sharding_indexed: several chunks in one stored object, behind or before an index of them.
struct Sharding {
  enum class IndexAt { start, end };
  Extents chunks;  ///< shape of the chunks inside; divides the shard's
  Pipeline inner;
  IndexAt index_at = IndexAt::end;
  ByteOrder index_order = ByteOrder::little;
  bool index_has_crc = true;

  bool operator==(const Sharding&) const = default;
};

struct ZarrMetadata {
  int version = 3;
  Extents shape;
  Extents chunks;  ///< of one stored object: of a shard, where there are shards
  ElementType type;
  std::vector<std::byte> fill;  ///< one element
  bool has_fill = true;         ///< version 2 may have none, which reads as zero
  char separator = '/';         ///< between the numbers of a chunk's key
  bool has_prefix = true;       ///< keys begin with "c" (version 3, encoding "default")
  Pipeline pipeline;            ///< of a stored object without shards
  std::optional<Sharding> sharding;
  std::vector<std::string> dimension_names;  ///< empty, or one for each, "" where there is none
  std::string attributes = "{}";             ///< JSON text of an object

  /// Shape of what is decoded at once.
  const Extents& inner_chunks() const { return sharding ? sharding->chunks : chunks; }
  bool operator==(const ZarrMetadata&) const = default;
};

/// Reads .zarray, and .zattrs where there is one ("" otherwise). `subject` starts every error text: Corrupt
/// for what is no such document, Invalid for what is not read, by its name.
Result<ZarrMetadata> parse_zarr_v2(std::string_view zarray, std::string_view zattrs,
                                   std::string_view subject);
/// Reads an array's zarr.json.
Result<ZarrMetadata> parse_zarr_v3(std::string_view json, std::string_view subject);

/// .zarray or zarr.json, reproducible. REQUIRES: what a parse or zarr_metadata() gave. For version 2 the
/// attributes are another file.
std::string to_json(const ZarrMetadata& metadata);

/// What holds for every array, wherever it comes from: sizes, products and codecs that fit each other.
Status check_zarr_metadata(const ZarrMetadata& metadata, std::string_view subject);

/// "c/0/1", "0.1", ...: the stored object's key in the array's folder. REQUIRES: one number for each
/// dimension.
std::string chunk_key(const ZarrMetadata& metadata, std::span<const std::uint64_t> chunk);

/// JSON as some writers put it: NaN, Infinity and -Infinity as bare words become texts.
std::string quote_bare_numbers(std::string_view json);

}  // namespace stoker::formats
