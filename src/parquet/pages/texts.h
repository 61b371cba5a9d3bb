// Texts, or other bytes of a Parquet column, in one buffer. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "codec/raw_bytes.h"

namespace stoker::parquet {

/// Readable bytes after a text that is appended: short texts are copied with a fixed size.
constexpr std::size_t kReadPadding = 32;

class ParquetTexts {
 public:
  ParquetTexts() = default;
  ParquetTexts(std::initializer_list<std::string_view> texts);

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  /// Valid until the next append() or clear().
  std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = begin_of(i);
    return {reinterpret_cast<const char*>(buffer_.data()) + begin,
            static_cast<std::size_t>(ends_[i] - begin)};
  }
  /// Total bytes of all texts.
  std::uint64_t bytes() const { return begin_of(size()); }

  /// Keeps the memory.
  void clear() { ends_.clear(); }
  void reserve(std::size_t texts) { ends_.reserve(texts); }
  /// REQUIRES: kReadPadding readable bytes after each.
  void append(std::span<const std::string_view> texts);
  /// Appends the next of `texts` for each 1 in `present`, and "" for each 0. REQUIRES: as many texts as ones,
  /// with padding as above.
  void append(std::span<const std::string_view> texts, std::span<const std::uint8_t> present);

 private:
  std::uint64_t begin_of(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  /// Where to write the next text, with space for these and kReadPadding more.
  std::byte* reserve_bytes(std::span<const std::string_view> texts);

  codec::UninitializedVector<std::uint64_t> ends_;
  codec::RawBytes buffer_;  // may be larger than its used part
};

}  // namespace stoker::parquet
