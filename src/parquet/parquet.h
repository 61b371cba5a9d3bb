// Reads Parquet files: the values of columns of any type, in structures and lists of any depth, and the byte
// ranges of values in columns of bytes. Used by pack, by index builders and by conversions of tables to
// tensors. Thread-safe: no state. Layout: docs/formats/parquet.md.
//
// Why our own reader: Arrow's C++ library would add tens of megabytes to every binary, and its API does not
// report the offset of a stored value in the file. The side index needs these offsets to read samples in
// place, with the same code for compressed pages. Our writer is canonical: the same rows give the same bytes,
// which the dataset version relies on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar.h"
#include "codec/chunks/chunk_map.h"
#include "parquet/pages/chunk_pages.h"
#include "parquet/schema/footer.h"
#include "parquet/schema/leaf.h"
#include "parquet/schema/page_index.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::parquet {

struct ParquetLimits {
  ByteCount values = 8_GiB;  ///< memory limit of one call's result; a text counts its bytes and 8
};

class ParquetFile {
 public:
  /// Reads the footer. `subject` starts every error text. Corrupt for damage, Invalid for an encrypted file.
  static Result<ParquetFile> open(archive::ReadAt read, std::uint64_t size, std::string subject);

  std::uint64_t rows() const { return footer_.rows; }
  /// Number of row groups, and the rows of one.
  std::size_t groups() const { return footer_.groups.size(); }
  std::uint64_t rows(std::size_t group) const { return footer_.groups[group].rows; }
  /// The columns, in the file's order.
  const std::vector<ParquetLeaf>& leaves() const { return leaves_; }
  /// JSON that the Hugging Face Hub's writers store in the footer, or "".
  const std::string& hub_metadata() const { return footer_.hub_metadata; }
  /// The position of the named leaf in leaves().
  std::optional<std::size_t> find(std::string_view name) const;

  /// Reads a leaf's values in one row group. Corrupt for damage; Invalid for unsupported types (`other`),
  /// encodings and codecs, for encrypted columns and columns in other files, and beyond the limits.
  Result<ParquetValues> read_leaf(std::size_t group, std::size_t leaf,
                                  const ParquetLimits& limits = {}) const;
  /// The same, reusing the memory of `values`.
  Status read_leaf(std::size_t group, std::size_t leaf, ParquetValues& values,
                   const ParquetLimits& limits = {}) const;
  /// The page rows and statistics of a leaf in no list, from the file's page index. Empty without a valid
  /// page index.
  struct PageRows {
    RowRange rows;
    std::optional<ParquetRange> range;
  };
  Result<std::vector<PageRows>> pages(std::size_t group, std::size_t leaf) const;
  /// As read_leaf(), but may skip pages without any of these rows (ascending), whose rows are then null.
  /// Returns the number of skipped pages.
  Result<std::uint64_t> read_rows(std::size_t group, std::size_t leaf, std::span<const RowRange> rows,
                                  ParquetValues& values) const;
  /// nullopt without reliable statistics.
  std::optional<ParquetRange> range_of(std::size_t group, std::size_t leaf) const;
  /// One text per row of the file: text verbatim, integers in decimal digits, "" for null. Fails as
  /// read_leaf() does, and Invalid for lists and other types.
  Result<std::vector<std::string>> read_texts(std::size_t leaf, const ParquetLimits& limits = {}) const;

  /// The byte range of a value in the file.
  struct ValueLocation {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool is_there = false;
  };
  /// The byte ranges of a leaf of bytes in no list, one per row. Invalid for a compressed column and for
  /// pages that are not PLAIN, because their values have no byte ranges. Reads headers and lengths, and
  /// payloads only of pages with a checksum. Corrupt if a checksum does not match.
  Result<std::vector<ValueLocation>> value_locations(std::size_t leaf,
                                                     const ParquetLimits& limits = {}) const;
  /// The same for a compressed or dictionary-encoded column: its pages, and the byte range of each value in
  /// the concatenated decompressed pages. Decompresses every page once and skips pages without values.
  struct Packed {
    codec::ChunkedArray pages;
    std::vector<ValueLocation> value_locations;
  };
  Result<Packed> packed(std::size_t leaf, const ParquetLimits& limits = {}) const;

  /// The element type and shape of a numeric leaf's rows.
  struct Elements {
    DType type = DType::f32;
    codec::Extents row;           ///< list sizes of a row, outermost first
    std::vector<std::byte> fill;  ///< replaces null
  };
  /// Consecutive row groups; all but the last must have as many rows.
  struct Groups {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  /// A numeric leaf as an array with one chunk per row group. Fails as read_leaf() does, Invalid for chunks
  /// of over 1 GiB. Reads no values: damage is found when a chunk is read.
  Result<codec::ChunkedArray> column(std::size_t leaf, const Groups& groups, const Elements& elements) const;

 private:
  ParquetFile(archive::ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}
  std::string column_subject(std::size_t leaf) const;
  Status check_chunk(const ParquetChunk& chunk, std::size_t leaf) const;
  // Both REQUIRE a successful check_chunk().
  std::uint64_t stored_bytes(const ParquetChunk& chunk) const;
  /// Views this and `subject`.
  ChunkPages pages_of(const ParquetChunk& chunk, std::string_view subject) const;
  std::optional<ParquetRange> range_in(std::size_t leaf, const ParquetStatistics& statistics,
                                       std::uint64_t rows) const;
  Result<std::vector<IndexedPage>> page_index(std::size_t group, std::size_t leaf) const;

  archive::ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  ParquetFooter footer_;
  std::vector<ParquetLeaf> leaves_;
};

}  // namespace stoker::parquet
