// TFRecord files of tf.train.Example records, one for each sample: a canonical writer (same samples, same
// bytes) and a bounded reader that says where the files of a sample lie. What tar pays for each file in
// headers and padding (about 770 bytes) is some 60 bytes here. Used by pack and by index builders.
// Thread-compatible. Layout: docs/formats/dataset.md.
#pragma once

#include <array>
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

/// A record holds less than this: the limit of the messages it is made of.
constexpr std::uint64_t kTfRecordLimit = (std::uint64_t{1} << 31) - 1;

/// One file of a sample, by its extension.
struct ExampleFile {
  std::string_view name;
  std::uint64_t bytes = 0;
};

/// What a record says beside its files.
struct ExampleHead {
  std::string_view key;               ///< feature "__key__"
  std::optional<std::int64_t> label;  ///< feature "cls"
};

/// Bytes of the record, framing included.
std::uint64_t tfrecord_bytes(const ExampleHead& head, std::span<const ExampleFile> files);

/// Writes records: begin(), then for each file begin_file() and append() until all its bytes are there, then
/// end(). The order of files is the caller's.
class TfRecordWriter {
 public:
  /// `sink` must outlive the writer.
  explicit TfRecordWriter(ByteSink& sink) : sink_(sink) {}

  /// `files` must outlive end(). Invalid for a sample that is too large for a record.
  Status begin(const ExampleHead& head, std::span<const ExampleFile> files);
  /// The offset at which the next file's bytes will lie.
  Result<std::uint64_t> begin_file();
  /// `crc32c` is that of the piece.
  Status append(std::span<const std::byte> data, std::uint32_t crc32c);
  /// Internal if fewer bytes than announced were appended.
  Status end();
  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

 private:
  Status put(std::span<const std::byte> data);

  ByteSink& sink_;
  std::uint64_t position_ = 0;
  std::uint64_t owed_ = 0;  // of the file at hand
  std::uint32_t crc_ = 0;   // of the record so far
  std::size_t next_file_ = 0;
  std::span<const ExampleFile> files_;
  std::string text_;
};

/// A file of a record that was read.
struct RecordFile {
  std::string name;
  std::uint64_t offset = 0;  ///< in the archive
  std::uint64_t bytes = 0;
};

/// A number of a record that was read.
struct RecordNumber {
  std::string name;
  std::int64_t value = 0;
};

struct ExampleRecord {
  std::uint64_t offset = 0;  ///< of the record's framing
  std::uint64_t bytes = 0;   ///< framing included
  std::string key;           ///< empty if it has none
  std::optional<std::int64_t> label;
  std::vector<RecordFile> files;      ///< features that are one run of bytes, the key aside
  std::vector<RecordNumber> numbers;  ///< features that are one whole number, the label aside
  std::vector<std::string> others;    ///< names of features with several values, or fractions
};

/// Walks a file of records. Reads heads and skips payloads, so the CRC of a length is checked and that of the
/// data is not (TfRecordCheck does). Memory is bounded whatever the file says.
class TfRecordReader {
 public:
  /// `subject` starts every error text.
  TfRecordReader(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}

  /// The next record; nothing at the end. Features that hold several values or fractions are only
  /// named. Corrupt for a torn record, a wrong CRC of a length, and what is no Example, Invalid for a file
  /// that is packed with ZLIB. After an error the reader stays at the end.
  Result<std::optional<ExampleRecord>> next();

 private:
  struct Scope;
  Result<std::optional<ExampleRecord>> next_record();
  Result<std::uint64_t> varint(Scope& scope);
  Result<Scope> content(Scope& scope);
  Result<Scope> field(Scope& scope, unsigned tag, std::string_view what);
  Result<std::string> text_of(const Scope& scope, std::string_view what);
  Status read_feature(Scope entry, ExampleRecord& into);
  static Status pass_over(std::string name, ExampleRecord& into);
  Status read_bytes(Scope list, std::string name, ExampleRecord& into);
  Status read_integer(Scope list, std::string name, ExampleRecord& into);
  Status fill(std::uint64_t at, std::size_t bytes);
  Status damaged(std::string_view what) const;

  ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  std::uint64_t position_ = 0;
  std::uint64_t window_begin_ = 0;
  std::vector<std::byte> window_;
};

/// Compares a record's data with the CRC behind it, while the file comes by in blocks, front to back.
class TfRecordCheck {
 public:
  /// Place and size are those that a reader found, framing included.
  TfRecordCheck(std::uint64_t offset, std::uint64_t bytes) : offset_(offset), bytes_(bytes) {}

  /// Whether the record ends in this block. REQUIRES: the blocks before it were taken, as far as it lies
  /// there.
  bool take(std::uint64_t begin, std::span<const std::byte> block);
  /// REQUIRES: take() found its end.
  bool holds() const;

 private:
  std::uint64_t offset_;
  std::uint64_t bytes_;
  std::uint32_t crc_ = 0;  // of the data so far
  std::array<std::byte, 4> stored_{};
};

/// A CRC-32C as TFRecord stores it.
std::uint32_t masked_crc(std::uint32_t crc);

}  // namespace stoker::formats
