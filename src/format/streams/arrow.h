// Tables in Arrow's IPC format (https://arrow.apache.org/docs/format/Columnar.html), as LitData appends them
// to its chunks: batches of rows, each checked whole when it is opened, so that any value is then one look
// away. Numbers, truth values, bytes, text, lists and structs; buffers plain or packed by zstd. Bytes come
// from files that nobody vouches for. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::formats {

struct ArrowField {
  enum class Kind { none, integer, natural, real, boolean, bytes, text, list, fixed_list, fields };

  std::string name;
  Kind kind = Kind::none;
  std::uint32_t width =
      0;  ///< bytes of a number, or of an offset of bytes, text and lists; values of a fixed list
  std::vector<ArrowField> children;
};

/// One column of a batch. Views what holds the batch.
struct ArrowColumn {
  const ArrowField* field = nullptr;
  std::uint64_t length = 0;
  std::span<const std::byte> validity;  ///< a bit for each value; empty: all are there
  std::span<const std::byte> offsets;   ///< ascending inside the data, or the child
  std::span<const std::byte> data;
  std::vector<ArrowColumn> children;

  bool is_null(std::uint64_t i) const;
  bool truth(std::uint64_t i) const;  ///< REQUIRES: boolean
  /// REQUIRES: a number.
  std::span<const std::byte> number(std::uint64_t i) const {
    return data.subspan(i * field->width, field->width);
  }
  /// REQUIRES: bytes or text.
  std::span<const std::byte> value(std::uint64_t i) const;
  /// Where a list's values lie in the child. REQUIRES: a list of either kind.
  std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t i) const;
};

class ArrowTable {
 public:
  /// `bytes` and `subject`, which begins errors, must outlive it. Invalid for what is not read, Corrupt for
  /// damage.
  static Result<ArrowTable> open(std::span<const std::byte> bytes, const std::string& subject);

  const std::vector<ArrowField>& fields() const { return fields_; }

  /// The columns of the next batch, with as many values each as next_rows(); none at the end. Valid until the
  /// next call.
  Result<const std::vector<ArrowColumn>*> next();
  std::uint64_t rows() const { return rows_; }  ///< of the batch at hand

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
  std::vector<std::vector<std::byte>> unpacked_;  // of the batch at hand
  std::uint64_t rows_ = 0;
};

}  // namespace stoker::formats
