// A member of the records of a compound type: its position in a record, and how to extract it. Thread-safe:
// no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::arrays::hdf5 {

struct RecordMember {
  static constexpr std::uint64_t kLargestRecord = 1u << 20;

  std::uint64_t record_bytes = 0;
  std::uint64_t offset = 0;  ///< in each record
  std::uint64_t bytes = 0;   ///< of the member, all elements of an array

  /// Whether it is inside a record of a supported size. The other functions REQUIRE it.
  bool is_valid() const {
    return bytes > 0 && record_bytes <= kLargestRecord && offset <= record_bytes &&
           bytes <= record_bytes - offset;
  }
  /// Bytes of the records that hold `picked` bytes of the member. REQUIRES: picked < 2^44, or a product
  /// checked before.
  std::uint64_t decoded_bytes(std::uint64_t picked) const { return picked / bytes * record_bytes; }
  /// REQUIRES: `records` has decoded_bytes(out.size()) bytes.
  void extract(std::span<const std::byte> records, std::span<std::byte> out) const;
  bool operator==(const RecordMember&) const = default;
};

}  // namespace stoker::arrays::hdf5
