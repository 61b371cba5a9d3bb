// Where the bytes of a shard's samples lie that others have packed in chunks (HDF5, Zarr) or pages (Parquet):
// a space of unpacked bytes, in which a locator is a plain range, and what is stored of it where. Part of an
// index section. Immutable, thread-safe. Layout: docs/formats/index.md#chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/chunked/shard_file.h"
#include "format/chunked/windows.h"
#include "format/chunks/box.h"
#include "format/chunks/chunk_cache.h"

namespace stoker::formats {

/// A chunk with more unpacked bytes is not read: what it takes of memory is known before it is taken.
inline constexpr std::uint64_t kLargestChunk = std::uint64_t{1} << 30;
/// The most bytes that a chunk of so many unpacked ones is stored in: what packing adds to what it cannot
/// pack.
constexpr std::uint64_t most_packed_bytes(std::uint64_t bytes) { return bytes + bytes / 8 + (64u << 10); }
/// The same of a column of so many numbers: decimals have up to 32 bytes, and pages have headers.
constexpr std::uint64_t most_column_bytes(std::uint64_t numbers) { return most_packed_bytes(numbers * 40); }

/// A chunk as it lies in the shard.
struct StoredChunk {
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  std::uint64_t offset = kMissing;  ///< kMissing: never written, reads as the fill value
  std::uint64_t bytes = 0;
  /// Of a grid's bit i: filter i was not applied. Of a page its unpacked bytes, of a column of a row group
  /// its rows, and of both from bit 48 on the codec.
  std::uint64_t extra = 0;

  static constexpr int kCodecShift = 48;
  /// Of a page.
  std::uint64_t unpacked() const { return extra & ((std::uint64_t{1} << kCodecShift) - 1); }
  /// Of a column of a row group.
  std::uint64_t rows() const { return unpacked(); }
  std::uint64_t codec() const { return extra >> kCodecShift; }
  bool is_missing() const { return offset == kMissing; }
  bool operator==(const StoredChunk&) const = default;
};

/// What turns stored chunks into elements in C order and this machine's byte order.
class ChunkCoder {
 public:
  /// `record`: as hdf5, and the elements are a member of the records that are stored.
  enum class Kind { plain, hdf5, record, zarr, page, column };

  virtual ~ChunkCoder() = default;
  virtual Kind kind() const = 0;
  /// What parse_coder() makes it of again.
  virtual std::string to_text() const = 0;
  /// What a chunk of so many bytes of elements unpacks to before they are picked out of it. REQUIRES:
  /// bytes <= kLargestChunk.
  virtual std::uint64_t whole(std::uint64_t bytes) const { return bytes; }
  /// Where elements lie in what decode() gives of records, every `swap_unit` bytes of them turned round.
  struct Record {
    std::uint64_t bytes = 0;   ///< of a record
    std::uint64_t offset = 0;  ///< of the member in it
    std::uint64_t member_bytes = 0;
    std::size_t swap_unit = 1;
    std::string packing;  ///< the same where decode() gives the same records
  };
  /// Of kind record.
  virtual std::optional<Record> record() const { return std::nullopt; }
  /// Exactly `bytes`, of records whole(bytes) as they are, or Corrupt, beginning with `subject`.
  virtual Result<Buffer> decode(const StoredChunk& place, std::uint64_t bytes,
                                std::span<const std::byte> stored, std::string_view subject) const = 0;
};

/// An array in chunks, or with `chunks` empty a list of pages: bytes, cut into pieces of any length. With
/// `windows` it has no chunks of its own, but rows that are boxes of other arrays.
struct ChunkedArray {
  std::string name;  ///< for messages: "dataset 'images'"
  Extents shape;     ///< at least one dimension; of a list its unpacked bytes
  Extents chunks;
  std::uint32_t element_bytes = 1;
  std::vector<std::byte> fill;  ///< one element
  std::string head;             ///< stands before each row, as the header of a .npy file
  std::shared_ptr<const ChunkCoder> coder;
  std::vector<StoredChunk> places;  ///< all of the grid, in C order; or the pages in order
  std::optional<Windows> windows = {};

  bool is_list() const { return chunks.empty() && !windows; }
};

/// Invalid for one that is not read, beginning with `subject`. `about` is the array that it is to decode.
Result<std::shared_ptr<const ChunkCoder>> parse_coder(std::string_view kind, const std::string& text,
                                                      const ChunkedArray& about, std::string_view subject);
std::string_view to_text(ChunkCoder::Kind kind);

class ChunkMap {
 public:
  /// An array as readers need it.
  struct Array {
    ChunkedArray is;
    std::uint64_t begin = 0;  ///< of its first byte, among all unpacked ones
    std::uint64_t bytes = 0;
    std::uint64_t row_bytes = 0;  ///< without its head
    std::uint64_t chunk_bytes = 0;
    Extents counts;                ///< chunks along each dimension
    Extents strides;               ///< of an unpacked chunk: of records as far apart as they are
    std::size_t held_as = 0;       ///< the first array that unpacks to the same chunks: of the same records
    std::uint64_t held_bytes = 0;  ///< of such a chunk
    std::optional<ChunkCoder::Record> record;
    std::vector<std::uint64_t> page_begins;  ///< of a list, from 0, and its end

    std::uint64_t unit() const { return is.head.size() + row_bytes; }
  };

  /// The arrays lie one behind another. Invalid, beginning with `subject`, for chunks of over 1 GiB; Corrupt
  /// for what does not hold: sizes that overflow, chunks that are not all there or beyond the shard's end.
  /// `parts`: the files of a shard that is a folder, which have shard_bytes together.
  static Result<ChunkMap> create(std::vector<ChunkedArray> arrays, std::uint64_t shard_bytes,
                                 std::string_view subject, std::vector<ShardPart> parts = {});
  /// What encode() gave, which may be anything. Fails as create() does.
  static Result<ChunkMap> parse(std::span<const std::byte> bytes, std::uint64_t shard_bytes,
                                std::string_view subject);
  /// Deterministic.
  std::string encode() const;

  const std::vector<Array>& arrays() const { return arrays_; }
  bool has_windows() const;
  /// Whether chunks are columns of a table.
  bool has_columns() const;
  /// Whether arrays are members of the same records, so that one unpacked chunk serves several.
  bool shares_chunks() const;
  /// An order of places in which each chunk is needed for one stretch: array after array, those that share
  /// chunks row by row.
  struct Turn {
    std::size_t held_as = 0;
    std::uint64_t row = 0;
    std::uint64_t at = 0;
    auto operator<=>(const Turn&) const = default;
  };
  Turn turn(std::uint64_t at) const;
  /// What a cache has to hold, so that each chunk is unpacked once in that order.
  std::uint64_t held_for_turns() const;
  /// Unpacked bytes of one chunk of each of the arrays that a row of windows shows; 0 without any.
  std::uint64_t largest_window() const;
  /// Unpacked bytes of all chunks that one sample touches, at most: what has to be kept for its neighbours.
  std::uint64_t most_for_a_sample() const;
  /// Empty where the shard is one file.
  const std::vector<ShardPart>& parts() const { return parts_; }
  /// Unpacked, of all arrays.
  std::uint64_t bytes() const { return arrays_.empty() ? 0 : arrays_.back().begin + arrays_.back().bytes; }
  /// REQUIRES: at < bytes().
  std::size_t array_at(std::uint64_t at) const;
  /// A number that places have in common which lie in the same rows of chunks, or the same page; those of
  /// windows, which begin in the same chunk. REQUIRES as array_at().
  std::uint64_t block(std::uint64_t at) const;
  /// Chunks that are stored, and their packed and unpacked bytes.
  struct Sum {
    std::uint64_t chunks = 0;
    std::uint64_t packed = 0;
    std::uint64_t unpacked = 0;
    std::uint64_t largest = 0;  ///< unpacked
  };
  Sum sum() const;

 private:
  Status measure_windows(Array& array, std::string_view subject) const;
  void share_chunks();

  std::vector<Array> arrays_;
  std::vector<ShardPart> parts_;
};

}  // namespace stoker::formats
