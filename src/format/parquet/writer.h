// Parquet files whose rows are samples, written so that any tool reads them and every value is one run of
// bytes: plain pages, no compression, no dictionaries. The side index then finds a sample as it does in a
// tar, and nobody unpacks a row group for it. Canonical: the same rows give the same bytes. Used by pack.
// Thread-compatible. Layout: docs/formats/parquet.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/tar.h"

namespace stoker::formats {

/// A value holds less than this: the pages that it lies in have sizes of 31 bits.
constexpr std::uint64_t kParquetValueLimit = (std::uint64_t{1} << 31) - 1024;

/// The columns of a file. Beside them it has `__key__`.
struct ParquetShape {
  std::vector<std::string> files;  ///< one column of bytes for each; a row may lack any
  std::size_t streamed = 0;        ///< among `files`: written as it comes; others wait for their group's end
  bool has_labels = false;         ///< a column `cls` of whole numbers; a row may lack it
};

/// Writes rows: begin_row(), add() for each file that it has, end_row(); and finish() at last.
class ParquetWriter {
 public:
  /// `sink` must outlive the writer.
  ParquetWriter(ByteSink& sink, ParquetShape shape);

  Status begin_row(std::string_view key, std::optional<std::int64_t> label);
  /// The row's file of that column. Invalid for one that is too large for a value.
  Status add(std::size_t column, std::span<const std::byte> bytes, std::uint32_t crc32c);
  /// What add() says of a file of so many bytes, for the row at hand.
  Status check_size(std::uint64_t bytes) const;
  /// The same in pieces, for the streamed column: `bytes` of them by append(), each with its CRC-32C.
  Status begin_streamed(std::uint64_t bytes);
  Status append(std::span<const std::byte> piece, std::uint32_t crc32c);
  Status end_row();
  /// Writes what is held, and the footer. Nothing may be added after it.
  Status finish();

  /// After finish(): where each file's bytes lie, in the order in which they were added.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

 private:
  // A value whose place is known when its page is written.
  struct Waiting {
    std::size_t file = 0;  // position in offsets_
    std::uint64_t at = 0;  // in the page's values, then in `held`
  };
  // Zeros and ones, as runs of the same.
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
    bool is_set = false;  // in the row at hand
    // The page at hand:
    std::string values;
    Levels levels;
    std::uint64_t rows = 0;
    std::vector<Waiting> waiting;
    // The row group's pages that are not written yet:
    std::string held;
    std::vector<Waiting> held_places;
    // The row group's:
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  // What the footer says of a column in a row group.
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

  ByteSink& sink_;
  std::vector<Column> columns_;  // __key__, the files', cls
  bool has_labels_;
  std::uint64_t position_ = 0;
  std::uint64_t rows_ = 0;  // of the row group at hand
  std::uint64_t owed_ = 0;  // of the streamed file at hand
  std::string key_;         // of the row at hand, for messages
  std::vector<Group> groups_;
  std::vector<std::uint64_t> offsets_;
};

/// Bytes that a row takes beside its files and key, about.
constexpr std::uint64_t kParquetRowBytes = 12;

}  // namespace stoker::formats
