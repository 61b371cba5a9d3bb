// Parquet's encodings by differences, and the one that splits numbers into streams of bytes, from bytes that
// nobody vouches for. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::formats {

/// DELTA_BINARY_PACKED: takes exactly `count` numbers off the front of `bytes` and puts them, modulo 2^64, in
/// place of what was in `numbers`. False for what does not hold.
bool take_deltas(std::span<const std::byte>& bytes, std::uint64_t count, std::vector<std::uint64_t>& numbers);

/// DELTA_LENGTH_BYTE_ARRAY: takes `count` strings off the front of `bytes`, which they view, and appends
/// them.
bool take_strings(std::span<const std::byte>& bytes, std::uint64_t count,
                  std::vector<std::string_view>& strings);

/// DELTA_BYTE_ARRAY: strings of which each begins as the one before it did.
class JoinedStrings {
 public:
  /// False for what does not hold. REQUIRES: `bytes` live until join().
  bool read(std::span<const std::byte> bytes, std::uint64_t count);
  /// The bytes that join() puts together.
  std::uint64_t joined_bytes() const { return joined_bytes_; }
  /// Appends the strings. One that shares nothing views `bytes`, the others view `joined`, which is filled.
  void join(std::vector<std::byte>& joined, std::vector<std::string_view>& strings) const;

 private:
  std::vector<std::uint64_t> shared_;  // bytes with the string before
  std::vector<std::string_view> rests_;
  std::uint64_t joined_bytes_ = 0;
};

/// BYTE_STREAM_SPLIT: the first `count` values of `width` bytes, whose first bytes come first, then all
/// second ones. REQUIRES: out has count * width bytes. False where there are not as many.
bool join_streams(std::span<const std::byte> bytes, std::size_t width, std::uint64_t count,
                  std::span<std::byte> out);

}  // namespace stoker::formats
