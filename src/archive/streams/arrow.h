// Reads tables in Arrow's IPC format (https://arrow.apache.org/docs/format/Columnar.html), as appended by
// LitData to its chunks. Each batch of rows is validated when it is opened, so that access to a value needs
// no checks. Numbers, booleans, bytes, text, lists and structs; buffers plain or zstd. The bytes are
// untrusted. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::archive {

struct ArrowField {
  enum class Kind {
    none,
    integer,
    unsigned_integer,
    floating,
    boolean,
    bytes,
    text,
    list,
    fixed_list,
    structure
  };

  std::string name;
  Kind kind = Kind::none;
  std::uint32_t width =
      0;  ///< bytes of a number, or of an offset of bytes, text and lists; values of a fixed list
  std::vector<ArrowField> children;
};

/// One column of a batch: a view of its buffers.
struct ArrowColumn {
  const ArrowField* field = nullptr;
  std::uint64_t length = 0;
  std::span<const std::byte> validity;  ///< a bit for each value; empty: no nulls
  std::span<const std::byte> offsets;   ///< ascending inside the data, or the child
  std::span<const std::byte> data;
  std::vector<ArrowColumn> children;

  bool is_null(std::uint64_t i) const;
  bool boolean(std::uint64_t i) const;  ///< REQUIRES: boolean
  /// REQUIRES: a number.
  std::span<const std::byte> number(std::uint64_t i) const {
    return data.subspan(i * field->width, field->width);
  }
  /// REQUIRES: bytes or text.
  std::span<const std::byte> value(std::uint64_t i) const;
  /// The range of a list's values in the child. REQUIRES: a list of either kind.
  std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t i) const;
};

class ArrowTable {
 public:
  /// `bytes` and `subject`, which begins errors, must outlive it. Invalid for unsupported tables, Corrupt
  /// for damage.
  static Result<ArrowTable> open(std::span<const std::byte> bytes, const std::string& subject);

  const std::vector<ArrowField>& fields() const { return fields_; }

  /// The columns of the next batch, with rows() values each; null at the end. Valid until the next call.
  Result<const std::vector<ArrowColumn>*> next();
  std::uint64_t rows() const { return rows_; }  ///< of the current batch

 private:
  struct Message;
  class Batch;
  ArrowTable(std::span<const std::byte> bytes, const std::string& subject)
      : bytes_(bytes), subject_(&subject) {}
  Result<Message> message();

  std::span<const std::byte> bytes_;
  const std::string* subject_;
  std::size_t at_ = 0;
  std::vector<ArrowField> fields_;
  std::vector<ArrowColumn> columns_;
  std::vector<std::vector<std::byte>> unpacked_;  // of the current batch
  std::uint64_t rows_ = 0;
};

}  // namespace stoker::archive
