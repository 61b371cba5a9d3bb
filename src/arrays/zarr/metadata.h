// The array metadata in .zarray (Zarr version 2) and zarr.json (version 3), parsed strictly and written
// canonically. Parsed metadata is consistent: no chunk is empty, no product of sizes overflows, and every
// codec is supported. Thread-safe: no state. Layout: docs/formats/zarr.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/zarr/data_type.h"
#include "codec/chunks/box.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// A codec from bytes to bytes.
struct BytesCodec {
  enum class Kind { blosc, zstd, gzip, zlib, lz4, shuffle, crc32c };
  /// blosc: how the bytes of elements are shuffled before compression.
  enum class Shuffle { none, bytes, bits };

  Kind kind = Kind::zstd;
  int level = 0;
  bool has_checksum = false;        ///< zstd
  bool is_crc_first = false;        ///< crc32c: before the data, as numcodecs allows
  std::string compressor = "lz4";   ///< blosc: blosclz, lz4, lz4hc, snappy, zlib, zstd
  Shuffle shuffle = Shuffle::none;  ///< blosc
  std::uint32_t element_bytes = 1;  ///< blosc, shuffle
  std::uint64_t block_bytes = 0;    ///< blosc: 0 for its default

  bool operator==(const BytesCodec&) const = default;
};
std::string_view to_text(BytesCodec::Kind kind);

/// The codecs of a chunk, in the order of encoding.
struct Pipeline {
  /// Dimension i of the stored chunk is the array's dimension axes[i]. Empty: the same order.
  std::vector<std::size_t> axes;
  codec::ByteOrder order = codec::ByteOrder::little;
  /// At most one of them compresses, so that the size before each is always known.
  std::vector<BytesCodec> codecs;

  bool operator==(const Pipeline&) const = default;
};

/// The codec sharding_indexed: several chunks in one stored object, after or before an index.
struct Sharding {
  enum class IndexAt { start, end };
  codec::Extents chunks;  ///< shape of the inner chunks; divides the shard's
  Pipeline inner;
  IndexAt index_at = IndexAt::end;
  codec::ByteOrder index_order = codec::ByteOrder::little;
  bool index_has_crc = true;

  bool operator==(const Sharding&) const = default;
};

struct ZarrMetadata {
  int version = 3;
  codec::Extents shape;
  codec::Extents chunks;  ///< shape of a stored object: of a shard, if there are shards
  codec::ElementType type;
  std::vector<std::byte> fill;  ///< one element; for variable length one value, which may be empty
  bool has_fill = true;         ///< version 2 may have no fill value, which reads as zero
  char separator = '/';         ///< between the numbers of a chunk's key
  bool has_prefix = true;       ///< keys begin with "c" (version 3, encoding "default")
  Pipeline pipeline;            ///< of a stored object without shards
  std::optional<Sharding> sharding;
  std::vector<std::string> dimension_names;  ///< empty, or one for each, "" for an unnamed one
  std::string attributes = "{}";             ///< JSON text of an object

  /// Shape of the unit of decoding.
  const codec::Extents& inner_chunks() const { return sharding ? sharding->chunks : chunks; }
  bool operator==(const ZarrMetadata&) const = default;
};

/// Parses .zarray, and .zattrs ("" without attributes). `subject` starts every error: Corrupt for damage,
/// Invalid for an unsupported feature, with its name.
Result<ZarrMetadata> parse_zarr_v2(std::string_view zarray, std::string_view zattrs,
                                   std::string_view subject);
/// Reads an array's zarr.json.
Result<ZarrMetadata> parse_zarr_v3(std::string_view json, std::string_view subject);

/// .zarray or zarr.json, reproducible. REQUIRES: metadata from a parse or from zarr_metadata(). In version
/// 2, the attributes are a separate file.
std::string to_json(const ZarrMetadata& metadata);

/// Checks that sizes, products and codecs are consistent.
Status check_zarr_metadata(const ZarrMetadata& metadata, std::string_view subject);

/// "c/0/1", "0.1", ...: the stored object's key in the array's folder. REQUIRES: one number for each
/// dimension.
std::string chunk_key(const ZarrMetadata& metadata, std::span<const std::uint64_t> chunk);

/// Quotes NaN, Infinity and -Infinity, which some writers store as bare words.
std::string quote_bare_numbers(std::string_view json);

}  // namespace stoker::arrays
