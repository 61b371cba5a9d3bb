// Columns of text and whole numbers out of a Parquet file, as lists of files have them: flat, with or without
// missing values. No other part of the format is read, and no library is needed. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
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

  /// The columns that are not nested, in the file's order.
  const std::vector<std::string>& names() const { return names_; }
  std::uint64_t rows() const { return rows_; }
  /// Reads these columns, each of them with rows() values. REQUIRES: they are among names(). Invalid for a
  /// column of another type (only BYTE_ARRAY, INT32, INT64), an encoding (only plain and dictionary) or a
  /// compression (none, Snappy, gzip, zstd) that is not read, and beyond the limits.
  Result<std::vector<ParquetColumn>> read(std::span<const std::string> columns,
                                          const ParquetLimits& limits = {}) const;

  /// Where one column of one row group lies.
  struct Chunk {
    std::int64_t type = -1;
    std::int64_t codec = 0;
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
    std::uint64_t rows = 0;
    std::string name;  ///< empty for a nested one
    bool is_optional = false;
  };

 private:
  ParquetFile(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}
  Status take_footer(std::span<const std::byte> footer);

  ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  std::uint64_t rows_ = 0;
  std::vector<std::string> names_;
  std::vector<Chunk> chunks_;
};

}  // namespace stoker::formats
