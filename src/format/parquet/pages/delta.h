// Parquet's encodings by differences, and the one that splits numbers into streams of bytes, from bytes that
// nobody vouches for. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/parquet/columns/texts.h"
#include "format/raw_bytes.h"

namespace stoker::formats {

/// DELTA_BINARY_PACKED: takes as many numbers off the front of `bytes` as `numbers` has room for, which must
/// be all, modulo 2^32 or 2^64. False for what does not hold.
bool take_deltas(std::span<const std::byte>& bytes, std::span<std::uint32_t> numbers);
bool take_deltas(std::span<const std::byte>& bytes, std::span<std::uint64_t> numbers);

/// DELTA_LENGTH_BYTE_ARRAY: takes `count` strings off the front of `bytes`, which they view, and puts them in
/// place of what was in `strings`.
bool take_strings(std::span<const std::byte>& bytes, std::uint64_t count,
                  std::vector<std::string_view>& strings);

/// DELTA_BYTE_ARRAY: strings of which each begins as the one before it did.
class JoinedStrings {
 public:
  /// False for what does not hold. REQUIRES: `bytes` live until join().
  bool read(std::span<const std::byte> bytes, std::uint64_t count);
  /// The bytes that join() puts together.
  std::uint64_t joined_bytes() const { return joined_bytes_; }
  /// Puts the strings in place of others. One that shares nothing views `bytes`, the others view `joined`,
  /// which is filled; kReadBehind bytes of it follow them.
  void join(RawBytes& joined, std::vector<std::string_view>& strings) const;

 private:
  Raw<std::uint64_t> shared_;  // bytes with the string before
  std::vector<std::string_view> rests_;
  std::uint64_t joined_bytes_ = 0;
};

/// BYTE_STREAM_SPLIT: the first `count` values of `width` bytes, whose first bytes come first, then all
/// second ones. REQUIRES: out has count * width bytes. False where there are not as many.
bool join_streams(std::span<const std::byte> bytes, std::size_t width, std::uint64_t count,
                  std::span<std::byte> out);

}  // namespace stoker::formats
