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
#include "format/raw_bytes.h"

namespace stoker::formats {

/// How a column's values are stored.
struct StoredType {
  std::int64_t type = -1;   ///< as Parquet numbers them
  std::uint32_t width = 0;  ///< bytes of a value of kParquetFixedByteArray

  bool is_bytes() const { return type == kParquetByteArray || type == kParquetFixedByteArray; }
  /// Bytes of a decoded value that is a number; 0 for others, and for types that nobody knows.
  std::size_t number_bytes() const;
};

/// The pages of one column chunk, one after another.
class ValueReader {
 public:
  /// `left`: bytes that may still be taken of memory, which what is put together lessens.
  ValueReader(StoredType type, std::string_view subject, std::uint64_t& left)
      : type_(type), subject_(subject), left_(left) {}

  /// The values of a dictionary page, from which the others then take. Texts view `data`.
  Status take_dictionary(const PageHeader& page, std::span<const std::byte> data);

  // The values of a data page, as many as there is room for: those that are not missing. Corrupt for what
  // does not hold, Invalid for encodings that are not read and beyond `left`.

  /// Numbers one behind another, number_bytes() each; a boolean is 0 or 1. REQUIRES: a type of numbers.
  Status read_numbers(const PageHeader& page, std::span<const std::byte> data, std::span<std::byte> numbers);
  /// In place of what was in `texts`: views of `data`, of the dictionary's, or, of encodings that join a
  /// value from pieces, of bytes that last until the next call. REQUIRES: a type of bytes. kReadBehind bytes
  /// follow each where they follow `data`.
  Status read_texts(const PageHeader& page, std::span<const std::byte> data, std::uint64_t count,
                    std::vector<std::string_view>& texts);

 private:
  Status damaged() const;
  Status not_read(const PageHeader& page) const;
  Status take_memory(std::uint64_t bytes);
  bool read_plain(std::span<const std::byte> data, std::span<std::byte> numbers) const;
  bool read_plain(std::span<const std::byte> data, std::uint64_t count,
                  std::vector<std::string_view>& texts) const;
  bool read_deltas(std::span<const std::byte> data, std::span<std::byte> numbers) const;
  Status read_joined(std::span<const std::byte> data, std::uint64_t count,
                     std::vector<std::string_view>& texts);
  Status read_split(std::span<const std::byte> data, std::uint64_t count,
                    std::vector<std::string_view>& texts);
  template <typename Take>
  bool read_positions(std::span<const std::byte> data, std::uint64_t count, const Take& take) const;

  StoredType type_;
  std::string_view subject_;
  std::uint64_t& left_;
  std::uint64_t dictionary_values_ = 0;
  RawBytes dictionary_numbers_;
  std::vector<std::string_view> dictionary_texts_;
  JoinedStrings shared_;
  RawBytes joined_;
};

}  // namespace stoker::formats
