// Decodes the values of a column's pages from all of Parquet's encodings. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codec/raw_bytes.h"
#include "parquet/pages/delta.h"
#include "parquet/pages/page.h"
#include "stoker/status.h"

namespace stoker::parquet {

/// The physical type of a column.
struct StoredType {
  std::int64_t type = -1;   ///< Parquet's number
  std::uint32_t width = 0;  ///< bytes of a value of kParquetFixedByteArray

  bool is_bytes() const { return type == kParquetByteArray || type == kParquetFixedByteArray; }
  /// Bytes of a decoded number; 0 for bytes and for unknown types.
  std::size_t number_bytes() const;
};

/// Decodes the pages of one column chunk in order.
class ValueReader {
 public:
  /// `left`: remaining bytes of memory, reduced by allocations.
  ValueReader(StoredType type, std::string_view subject, std::uint64_t& left)
      : type_(type), subject_(subject), left_(left) {}

  /// Reads a dictionary page, used by the following data pages. Texts view `data`.
  Status read_dictionary(const PageHeader& page, std::span<const std::byte> data);

  // Both read the values of a data page, without nulls. Corrupt for damage, Invalid for unsupported encodings
  // and beyond `left`.

  /// Consecutive numbers, number_bytes() each; a boolean is 0 or 1. REQUIRES: a numeric type.
  Status read_numbers(const PageHeader& page, std::span<const std::byte> data, std::span<std::byte> numbers);
  /// Replaces `texts` by views of `data`, of the dictionary, or, for encodings that join values, of bytes
  /// that last until the next call. REQUIRES: a type of bytes. kReadPadding readable bytes follow each if
  /// they follow `data`.
  Status read_texts(const PageHeader& page, std::span<const std::byte> data, std::uint64_t count,
                    std::vector<std::string_view>& texts);

 private:
  Status damaged() const;
  Status not_read(const PageHeader& page) const;
  Status charge_memory(std::uint64_t bytes);
  bool read_plain(std::span<const std::byte> data, std::span<std::byte> numbers) const;
  bool read_plain(std::span<const std::byte> data, std::uint64_t count,
                  std::vector<std::string_view>& texts) const;
  bool read_deltas(std::span<const std::byte> data, std::span<std::byte> numbers) const;
  Status read_joined(std::span<const std::byte> data, std::uint64_t count,
                     std::vector<std::string_view>& texts);
  Status read_split(std::span<const std::byte> data, std::uint64_t count,
                    std::vector<std::string_view>& texts);
  template <typename Consume>
  bool read_positions(std::span<const std::byte> data, std::uint64_t count, const Consume& consume) const;

  StoredType type_;
  std::string_view subject_;
  std::uint64_t& left_;
  std::uint64_t dictionary_values_ = 0;
  codec::RawBytes dictionary_numbers_;
  std::vector<std::string_view> dictionary_texts_;
  DeltaStrings shared_;
  codec::RawBytes joined_;
};

}  // namespace stoker::parquet
