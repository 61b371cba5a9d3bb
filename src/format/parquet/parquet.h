// Parquet files: what stands in their columns, whatever the type and however deep in structures and lists,
// and where the values of columns of bytes lie. No library is needed. Used by pack, by index builders and by
// what makes tensors of tables. Thread-safe: no state. Layout: docs/formats/parquet.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "format/chunked/chunk_map.h"
#include "format/parquet/footer.h"
#include "format/parquet/leaf.h"
#include "format/parquet/page_index.h"
#include "format/parquet/pages/chunk_pages.h"
#include "format/tar.h"

namespace stoker::formats {

struct ParquetLimits {
  ByteCount values = 8_GiB;  ///< memory of what one call gives; a text counts its bytes and 8
};

class ParquetFile {
 public:
  /// Reads the footer. `subject` starts every error text. Corrupt for what does not hold, Invalid for an
  /// encrypted file.
  static Result<ParquetFile> open(ReadAt read, std::uint64_t size, std::string subject);

  std::uint64_t rows() const { return footer_.rows; }
  /// Row groups, and the rows of one.
  std::size_t groups() const { return footer_.groups.size(); }
  std::uint64_t rows(std::size_t group) const { return footer_.groups[group].rows; }
  /// The columns, in the file's order.
  const std::vector<ParquetLeaf>& leaves() const { return leaves_; }
  /// Where the one of that name is in leaves().
  std::optional<std::size_t> find(std::string_view name) const;

  /// A leaf's values in one row group. Corrupt for what does not hold; Invalid for what is not read (a type
  /// that is `other`, an encoding or a compression), is encrypted or lies in another file, and beyond the
  /// limits.
  Result<ParquetValues> read_leaf(std::size_t group, std::size_t leaf,
                                  const ParquetLimits& limits = {}) const;
  /// The same into `values`, whatever they were: one row group after the other into the same memory.
  Status read_leaf(std::size_t group, std::size_t leaf, ParquetValues& values,
                   const ParquetLimits& limits = {}) const;
  /// The pages of a leaf in no list, and what is said of the values of each, where the file has a page index:
  /// that of where pages lie, and perhaps one of what they hold. Empty where it has none, or one that does
  /// not hold.
  struct PageRows {
    RowRange rows;
    std::optional<ParquetRange> range;
  };
  Result<std::vector<PageRows>> pages(std::size_t group, std::size_t leaf) const;
  /// As read_leaf(), but pages without any of these rows (ascending) may be passed over, whose rows are then
  /// missing; how many pages were.
  Result<std::uint64_t> read_rows(std::size_t group, std::size_t leaf, std::span<const RowRange> rows,
                                  ParquetValues& values) const;
  /// Nothing where the file says nothing that can be relied on.
  std::optional<ParquetRange> range_of(std::size_t group, std::size_t leaf) const;
  /// A text for each row of the file: what is text as it is, whole numbers in decimal digits, "" where a
  /// value is missing. Fails as read_leaf() does, and Invalid for lists and other types.
  Result<std::vector<std::string>> read_texts(std::size_t leaf, const ParquetLimits& limits = {}) const;

  /// Where a value lies in the file.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool is_there = false;
  };
  /// Those of a leaf of bytes in no list, one for each row. Invalid where the column is compressed or its
  /// pages are not plain: then no value lies anywhere by itself. Reads headers and lengths, and passes over
  /// the values of a page that has no checksum. Corrupt where one that has is of other bytes.
  Result<std::vector<Place>> places(std::size_t leaf, const ParquetLimits& limits = {}) const;
  /// The same of a column that is packed or has dictionaries: its pages, and where in them, unpacked and one
  /// behind another, each value lies. Unpacks every page once. Pages without a value are left out.
  struct Packed {
    ChunkedArray pages;
    std::vector<Place> places;
  };
  Result<Packed> packed(std::size_t leaf, const ParquetLimits& limits = {}) const;

  /// Rows of a leaf of numbers as they become elements.
  struct Elements {
    DType type = DType::f32;
    Extents row;                  ///< how many items the lists of a row have, outermost first
    std::vector<std::byte> fill;  ///< in place of a number that is missing
  };
  /// So many row groups, from the first on; all but the last have as many rows.
  struct Groups {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  /// Where a leaf's numbers lie: an array in chunks, of a row group each. Fails as read_leaf() does, Invalid
  /// for chunks of over 1 GiB. Reads nothing: what does not hold is found where a chunk is read.
  Result<ChunkedArray> column(std::size_t leaf, const Groups& groups, const Elements& elements) const;

 private:
  ParquetFile(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}
  std::string shown(std::size_t leaf) const;
  Status check_chunk(const ParquetChunk& chunk, std::size_t leaf) const;
  // Both REQUIRE that check_chunk() is content.
  std::uint64_t stored_bytes(const ParquetChunk& chunk) const;
  /// Views this and `subject`.
  ChunkPages pages_of(const ParquetChunk& chunk, std::string_view subject) const;
  std::optional<ParquetRange> range_in(std::size_t leaf, const ParquetStatistics& said,
                                       std::uint64_t rows) const;
  Result<std::vector<IndexedPage>> page_index(std::size_t group, std::size_t leaf) const;

  ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  ParquetFooter footer_;
  std::vector<ParquetLeaf> leaves_;
};

}  // namespace stoker::formats
