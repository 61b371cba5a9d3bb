// The values of a column's pages, out of any of Parquet's encodings. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/parquet/pages/delta.h"
#include "format/parquet/pages/page.h"

namespace stoker::formats {

/// How a column's values are stored.
struct StoredType {
  std::int64_t type = -1;   ///< as Parquet numbers them
  std::uint32_t width = 0;  ///< bytes of a value of kParquetFixedByteArray

  bool is_bytes() const { return type == kParquetByteArray || type == kParquetFixedByteArray; }
  /// Bytes of a decoded value that is a number; 0 for others, and for types that nobody knows.
  std::size_t number_bytes() const;
};

/// Those that are there, of one page.
struct PageValues {
  std::vector<std::byte> numbers;         ///< one behind another, number_bytes() each; a boolean is 0 or 1
  std::vector<std::string_view> strings;  ///< in place of numbers for bytes: views, see ValueReader::read()

  void clear() {
    numbers.clear();
    strings.clear();
  }
};

/// The pages of one column chunk, one after another.
class ValueReader {
 public:
  /// `left`: bytes that may still be taken of memory, which what is put together lessens.
  ValueReader(StoredType type, std::string_view subject, std::uint64_t& left)
      : type_(type), subject_(subject), left_(left) {}

  /// The values of a dictionary page, from which read() then takes. They view `data`.
  Status take_dictionary(const PageHeader& page, std::span<const std::byte> data);
  /// `count` values of a data page. Views are of `data`, of the dictionary's, or, of encodings that join a
  /// value from pieces, of bytes that last until the next call. Corrupt for what does not hold, Invalid for
  /// encodings that are not read and beyond `left`.
  Status read(const PageHeader& page, std::span<const std::byte> data, std::uint64_t count,
              PageValues& values);

 private:
  Status damaged() const;
  Status take_memory(std::uint64_t bytes);
  bool read_plain(std::span<const std::byte> data, std::uint64_t count, PageValues& values) const;
  Status read_joined(std::span<const std::byte> data, std::uint64_t count, PageValues& values);
  Status read_split(std::span<const std::byte> data, std::uint64_t count, PageValues& values);
  bool read_deltas(std::span<const std::byte> data, std::uint64_t count, PageValues& values);
  Status read_positions(std::span<const std::byte> data, std::uint64_t count, PageValues& values);

  StoredType type_;
  std::string_view subject_;
  std::uint64_t& left_;
  PageValues dictionary_;
  std::uint64_t dictionary_values_ = 0;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint64_t> deltas_;
  JoinedStrings shared_;
  std::vector<std::byte> joined_;
};

}  // namespace stoker::formats
