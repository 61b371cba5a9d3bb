// A member of records, which are what a dataset of a compound type stores: where it lies in each, and how it
// is picked out of many. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::formats::hdf5 {

struct RecordMember {
  static constexpr std::uint64_t kLargestRecord = 1u << 20;

  std::uint64_t record_bytes = 0;
  std::uint64_t offset = 0;  ///< in each record
  std::uint64_t bytes = 0;   ///< of it, all elements of an array

  /// Whether it lies inside a record that is read. The others REQUIRE it.
  bool holds() const {
    return bytes > 0 && record_bytes <= kLargestRecord && offset <= record_bytes &&
           bytes <= record_bytes - offset;
  }
  /// Bytes of the records of which `picked` bytes are picked. REQUIRES: picked < 2^44, or a product that was
  /// seen to fit.
  std::uint64_t whole(std::uint64_t picked) const { return picked / bytes * record_bytes; }
  /// REQUIRES: `records` has whole(out.size()) bytes.
  void pick(std::span<const std::byte> records, std::span<std::byte> out) const;
  bool operator==(const RecordMember&) const = default;
};

}  // namespace stoker::formats::hdf5
