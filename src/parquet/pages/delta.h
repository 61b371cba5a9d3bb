// Parquet's delta encodings and BYTE_STREAM_SPLIT, from untrusted bytes. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codec/raw_bytes.h"
#include "parquet/pages/texts.h"

namespace stoker::parquet {

/// DELTA_BINARY_PACKED: consumes numbers from the front of `bytes` until `numbers` is full, modulo 2^32 or
/// 2^64. False for damage, and unless these are all numbers.
bool decode_deltas(std::span<const std::byte>& bytes, std::span<std::uint32_t> numbers);
bool decode_deltas(std::span<const std::byte>& bytes, std::span<std::uint64_t> numbers);

/// DELTA_LENGTH_BYTE_ARRAY: consumes `count` strings from the front of `bytes` and replaces `strings` by
/// views of them.
bool decode_strings(std::span<const std::byte>& bytes, std::uint64_t count,
                    std::vector<std::string_view>& strings);

/// DELTA_BYTE_ARRAY: strings that share a prefix with their predecessor.
class DeltaStrings {
 public:
  /// False for damage. REQUIRES: `bytes` live until join().
  bool read(std::span<const std::byte> bytes, std::uint64_t count);
  /// Size of the strings that join() builds.
  std::uint64_t joined_bytes() const { return joined_bytes_; }
  /// Replaces `strings`. A string without a shared prefix views `bytes`, the rest view `joined`, which is
  /// filled with kReadPadding bytes after them.
  void join(codec::RawBytes& joined, std::vector<std::string_view>& strings) const;

 private:
  codec::UninitializedVector<std::uint64_t> shared_;  // prefix shared with the previous string
  std::vector<std::string_view> rests_;
  std::uint64_t joined_bytes_ = 0;
};

/// BYTE_STREAM_SPLIT: the first `count` values of `width` bytes, stored as all first bytes, then all second
/// bytes and so on. REQUIRES: out has count * width bytes. False if there are fewer.
bool join_streams(std::span<const std::byte> bytes, std::size_t width, std::uint64_t count,
                  std::span<std::byte> out);

}  // namespace stoker::parquet
