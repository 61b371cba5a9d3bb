// Writes Parquet files whose rows are samples. Any tool reads them, and every value is one byte range: plain
// pages, no compression, no dictionaries. The side index therefore finds a sample as in a tar, and readers
// need not decompress a row group. Canonical: the same rows give the same bytes. Used by pack.
// Thread-compatible. Layout: docs/formats/parquet.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar.h"
#include "stoker/status.h"

namespace stoker::parquet {

/// Values are smaller than this, because page sizes have 31 bits.
constexpr std::uint64_t kParquetValueLimit = (std::uint64_t{1} << 31) - 1024;

/// The columns of a file besides `__key__`.
struct ParquetColumns {
  std::vector<std::string> files;  ///< one column of bytes each; null in rows without the file
  std::size_t streamed =
      0;  ///< in `files`: written immediately; the other columns are buffered until the end of their group
  bool has_labels = false;  ///< an integer column `cls`; null in rows without a label
};

/// Writes rows: begin_row(), add() for each file of the row, end_row(); finally finish().
class ParquetWriter {
 public:
  /// `sink` must outlive the writer.
  ParquetWriter(archive::ByteSink& sink, ParquetColumns shape);

  Status begin_row(std::string_view key, std::optional<std::int64_t> label);
  /// Adds the row's file in a column. Invalid if it is too large for a value.
  Status add(std::size_t column, std::span<const std::byte> bytes, std::uint32_t crc32c);
  /// The error of add() for a file of this size in the current row.
  Status check_size(std::uint64_t bytes) const;
  /// The same in pieces, for the streamed column: `bytes` in total by append(), each piece with its CRC-32C.
  Status begin_streamed(std::uint64_t bytes);
  Status append(std::span<const std::byte> piece, std::uint32_t crc32c);
  Status end_row();
  /// Writes buffered pages and the footer. Nothing may be added afterwards.
  Status finish();

  /// After finish(): the offset of each file's bytes, in the order of add().
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

 private:
  // A value whose offset is known when its page is written.
  struct PendingOffset {
    std::size_t file = 0;  // position in offsets_
    std::uint64_t at = 0;  // in the page's values, then in `buffered`
  };
  // Run-length encoded levels of zeros and ones.
  struct Levels {
    std::string runs;
    bool value = false;
    std::uint64_t count = 0;
    void add(bool is_there);
    std::string finish();
  };
  struct Column {
    std::string name;
    int type = 0;
    bool is_optional = true;
    bool is_streamed = false;
    bool is_set = false;  // in the current row
    // The current page:
    std::string values;
    Levels levels;
    std::uint64_t rows = 0;
    std::vector<PendingOffset> pending;
    // Pages of the row group that are not written yet:
    std::string buffered;
    std::vector<PendingOffset> buffered_offsets;
    // The row group's chunk:
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  // The footer's entry for a column in a row group.
  struct Chunk {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  struct Group {
    std::uint64_t rows = 0;
    std::vector<Chunk> chunks;
  };

  Column& file(std::size_t column) { return columns_[1 + column]; }
  void set(Column& column, bool is_there);
  Status put(std::string_view bytes);
  Status end_page(Column& column);
  Status end_group();
  std::string footer() const;

  archive::ByteSink& sink_;
  std::vector<Column> columns_;  // __key__, files, cls
  bool has_labels_;
  std::uint64_t position_ = 0;
  std::uint64_t rows_ = 0;       // of the current row group
  std::uint64_t remaining_ = 0;  // of the streamed file
  std::string key_;              // of the current row, for messages
  std::vector<Group> groups_;
  std::vector<std::uint64_t> offsets_;
};

/// Approximate overhead of a row besides its files and key.
constexpr std::uint64_t kParquetRowBytes = 12;

}  // namespace stoker::parquet
