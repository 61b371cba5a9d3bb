// Columns of text, bytes and whole numbers out of a Parquet file, flat or in structures, with or without
// missing values; and where the values lie, for files whose pages are plain. Lists are passed over. No
// library is needed. Used by pack and by index builders. Thread-safe: no state. Layout:
// docs/formats/parquet.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/tar.h"

namespace stoker::formats {

struct ParquetLimits {
  ByteCount values = 8_GiB;  ///< of all columns together, 32 bytes added for each value
};

/// A column: text as it is, numbers in decimal digits, "" where a value is missing.
struct ParquetColumn {
  std::string name;
  std::vector<std::string> values;
};

class ParquetFile {
 public:
  /// Reads the footer. `subject` starts every error text. Corrupt for what does not hold, Invalid for an
  /// encrypted file.
  static Result<ParquetFile> open(ReadAt read, std::uint64_t size, std::string subject);

  /// The columns that are in no list, in the file's order; one in a structure as "image.bytes".
  const std::vector<std::string>& names() const { return names_; }
  /// Those that are.
  const std::vector<std::string>& lists() const { return lists_; }
  std::uint64_t rows() const { return rows_; }
  /// What a column holds. `bytes` is text too.
  enum class Kind { bytes, integers, other };
  /// REQUIRES: it is among names(). A column without any row group holds bytes.
  Kind kind(std::string_view column) const;
  /// Row groups, and the rows of one.
  std::size_t groups() const { return group_rows_.size(); }
  std::uint64_t rows(std::size_t group) const { return group_rows_[group]; }
  /// What read() gives of one row group and column.
  Result<std::vector<std::string>> read_group(std::size_t group, const std::string& column,
                                              const ParquetLimits& limits = {}) const;
  /// Where a value lies in the file.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool is_there = false;
  };
  /// Those of a column of bytes, one for each row. Invalid where the column is compressed or has
  /// dictionaries: then no value lies anywhere by itself. Reads headers and lengths, and passes over the
  /// values.
  Result<std::vector<Place>> places(const std::string& column, const ParquetLimits& limits = {}) const;
  /// The same of a column that is packed or has dictionaries: its pages, and where in them, unpacked and one
  /// behind another, each value lies. Unpacks every page once. Pages without a value are left out.
  struct Packed {
    ChunkedArray pages;
    std::vector<Place> places;
  };
  Result<Packed> packed(const std::string& column, const ParquetLimits& limits = {}) const;
  /// Reads these columns, each of them with rows() values. REQUIRES: they are among names(). Invalid for a
  /// column of another type (only BYTE_ARRAY, INT32, INT64), an encoding (only plain and dictionary) or a
  /// compression (none, Snappy, gzip, zstd, LZ4_RAW) that is not read, and beyond the limits.
  Result<std::vector<ParquetColumn>> read(std::span<const std::string> columns,
                                          const ParquetLimits& limits = {}) const;

  /// Where one column of one row group lies.
  struct Chunk {
    std::int64_t type = -1;
    std::int64_t codec = 0;
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
    std::uint64_t rows = 0;
    std::size_t group = 0;
    std::string name;         ///< empty for one that is not among names()
    unsigned definition = 0;  ///< the level of a value that is there: above 0 values may be missing
  };

 private:
  ParquetFile(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}
  Status take_footer(std::span<const std::byte> footer);
  std::string shown(std::string_view column) const;
  Status check_place(const Chunk& chunk) const;
  Result<std::vector<std::byte>> chunk_bytes(const Chunk& chunk) const;

  ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  std::uint64_t rows_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> lists_;
  std::vector<std::uint64_t> group_rows_;
  std::vector<Chunk> chunks_;
};

}  // namespace stoker::formats
