// Maps the samples of a chunked shard (HDF5, Zarr, Parquet pages) to stored bytes. Locators are ranges of
// decompressed bytes, and the map holds the offset of each stored chunk. Part of an index section. Immutable,
// thread-safe. Layout: docs/formats/index.md#chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/chunks/box.h"
#include "codec/chunks/chunk_cache.h"
#include "codec/chunks/shard_file.h"
#include "codec/chunks/windows.h"
#include "stoker/status.h"

namespace stoker::codec {

/// Chunks with more decompressed bytes are rejected, so that memory is bounded before it is allocated.
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 30;
/// Limit on the stored size of a chunk with `bytes` decompressed ones: the overhead of compression on random
/// data.
constexpr std::uint64_t max_packed_bytes(std::uint64_t bytes) { return bytes + bytes / 8 + (64u << 10); }
/// The same for a column of `numbers`: decimals have up to 32 bytes, and pages have headers.
constexpr std::uint64_t max_column_bytes(std::uint64_t numbers) { return max_packed_bytes(numbers * 40); }

/// A chunk as stored in the shard.
struct StoredChunk {
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  std::uint64_t offset = kMissing;  ///< kMissing: never written, reads as the fill value
  std::uint64_t bytes = 0;
  /// Grid chunks: bit i is set if filter i was not applied. Pages: decompressed bytes. Columns of a row
  /// group: rows. Pages and columns have the codec from bit 48 on.
  std::uint64_t extra = 0;

  static constexpr int kCodecShift = 48;
  /// For a page.
  std::uint64_t unpacked() const { return extra & ((std::uint64_t{1} << kCodecShift) - 1); }
  /// For a column of a row group.
  std::uint64_t rows() const { return unpacked(); }
  std::uint64_t codec() const { return extra >> kCodecShift; }
  bool is_missing() const { return offset == kMissing; }
  bool operator==(const StoredChunk&) const = default;
};

/// Decodes stored chunks into elements in C order and this machine's byte order.
class ChunkCoder {
 public:
  /// `record`: as hdf5, for one member of stored records.
  enum class Kind { plain, hdf5, record, zarr, page, column };

  virtual ~ChunkCoder() = default;
  virtual Kind kind() const = 0;
  /// The inverse of parse_coder().
  virtual std::string to_text() const = 0;
  /// The decompressed size of a chunk with `bytes` of elements, before a member is extracted. REQUIRES: bytes
  /// <= kMaxChunkBytes.
  virtual std::uint64_t decoded_bytes(std::uint64_t bytes) const { return bytes; }
  /// Where a member is in decoded records; every `swap_unit` bytes of it are byte-swapped.
  struct Record {
    std::uint64_t bytes = 0;   ///< of a record
    std::uint64_t offset = 0;  ///< of the member in it
    std::uint64_t member_bytes = 0;
    std::size_t swap_unit = 1;
    std::string packing;  ///< equal where decode() returns the same records
  };
  /// For kind record.
  virtual std::optional<Record> record() const { return std::nullopt; }
  /// Exactly `bytes`, or for records the decoded_bytes(bytes) of whole records, or Corrupt, beginning with
  /// `subject`.
  virtual Result<Buffer> decode(const StoredChunk& place, std::uint64_t bytes,
                                std::span<const std::byte> stored, std::string_view subject) const = 0;
};

/// A chunked array. With empty `chunks`, a list of pages: bytes cut into pieces of any length. With
/// `windows`, rows are boxes of other arrays.
struct ChunkedArray {
  std::string name;  ///< for messages: "dataset 'images'"
  Extents shape;     ///< at least one dimension; for a list its decompressed bytes
  Extents chunks;
  std::uint32_t element_bytes = 1;
  std::vector<std::byte> fill;  ///< one element
  std::string head;             ///< header before each row, such as that of a .npy file
  std::shared_ptr<const ChunkCoder> coder;
  std::vector<StoredChunk> stored_chunks;  ///< the whole grid in C order; or the pages in order
  std::optional<Windows> windows = {};

  bool is_list() const { return chunks.empty() && !windows; }
};

/// Parses the result of ChunkCoder::to_text(), from untrusted input, for the array that it decodes. Corrupt
/// for damage, Invalid for an unsupported coder, beginning with `subject`.
using CoderParser = Result<std::shared_ptr<const ChunkCoder>> (*)(std::string_view kind,
                                                                  const std::string& text,
                                                                  const ChunkedArray& array,
                                                                  std::string_view subject);
/// The coders of this room: of plain elements and of pages. dataset/coders.h parses the coders of all rooms.
Result<std::shared_ptr<const ChunkCoder>> parse_coder(std::string_view kind, const std::string& text,
                                                      const ChunkedArray& array, std::string_view subject);
std::string_view to_text(ChunkCoder::Kind kind);

class ChunkMap {
 public:
  /// An array with precomputed sizes.
  struct Array {
    ChunkedArray spec;
    std::uint64_t begin = 0;  ///< of its first byte, among all decompressed ones
    std::uint64_t bytes = 0;
    std::uint64_t row_bytes = 0;  ///< without its head
    std::uint64_t chunk_bytes = 0;
    Extents counts;   ///< chunks along each dimension
    Extents strides;  ///< of a decoded chunk; for records, of whole records
    std::size_t chunk_owner =
        0;  ///< the first array with the same decoded chunks (members of the same records)
    std::uint64_t decoded_chunk_bytes = 0;  ///< size of such a chunk
    std::optional<ChunkCoder::Record> record;
    std::vector<std::uint64_t> page_begins;  ///< for a list: begin of each page, and the end

    std::uint64_t row_stride() const { return spec.head.size() + row_bytes; }
  };

  /// The arrays follow one after the other. Invalid, beginning with `subject`, for chunks of over 1 GiB;
  /// Corrupt for sizes that overflow, and for chunks that are missing or beyond the shard's end. `parts`: the
  /// files of a multi-file shard, with shard_bytes in total.
  static Result<ChunkMap> create(std::vector<ChunkedArray> arrays, std::uint64_t shard_bytes,
                                 std::string_view subject, std::vector<ShardPart> parts = {});
  /// Parses the result of encode(), from untrusted input. Fails as create() does.
  static Result<ChunkMap> parse(std::span<const std::byte> bytes, std::uint64_t shard_bytes,
                                std::string_view subject, CoderParser coders = parse_coder);
  /// Deterministic.
  std::string encode() const;

  const std::vector<Array>& arrays() const { return arrays_; }
  bool has_windows() const;
  /// Whether chunks are columns of a table.
  bool has_columns() const;
  /// Whether arrays are members of the same records, so that several share one decoded chunk.
  bool shares_chunks() const;
  /// A sort key for reads: array after array, row by row where arrays share chunks. In this order, each chunk
  /// is needed only once.
  struct ReadKey {
    std::size_t chunk_owner = 0;
    std::uint64_t row = 0;
    std::uint64_t at = 0;
    auto operator<=>(const ReadKey&) const = default;
  };
  ReadKey read_key(std::uint64_t at) const;
  /// The cache size that decodes each chunk only once in that order.
  std::uint64_t cache_bytes_in_read_order() const;
  /// Decompressed bytes of one chunk of each array in a window row; 0 without windows.
  std::uint64_t max_window_bytes() const;
  /// Upper bound of the decompressed bytes of all chunks of one sample, which its neighbours use too.
  std::uint64_t max_sample_chunk_bytes() const;
  /// Empty if the shard is one file.
  const std::vector<ShardPart>& parts() const { return parts_; }
  /// Decompressed, of all arrays.
  std::uint64_t bytes() const { return arrays_.empty() ? 0 : arrays_.back().begin + arrays_.back().bytes; }
  /// REQUIRES: at < bytes().
  std::size_t array_at(std::uint64_t at) const;
  /// The same number for all positions in the same row of chunks or the same page, and for windows that begin
  /// in the same chunk. REQUIRES as array_at().
  std::uint64_t block(std::uint64_t at) const;
  /// Number of stored chunks, and their compressed and decompressed bytes.
  struct Totals {
    std::uint64_t chunks = 0;
    std::uint64_t packed = 0;
    std::uint64_t unpacked = 0;
    std::uint64_t largest = 0;  ///< decompressed
  };
  Totals totals() const;

 private:
  Status measure_windows(Array& array, std::string_view subject) const;
  void find_shared_chunks();

  std::vector<Array> arrays_;
  std::vector<ShardPart> parts_;
};

}  // namespace stoker::codec
