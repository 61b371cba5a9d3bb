// Texts, or whatever bytes a Parquet column holds, one behind another. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "format/raw_bytes.h"

namespace stoker::formats {

/// Bytes that may be read, whatever they are, behind a text that is appended: short ones are copied without
/// asking how long they are.
constexpr std::size_t kReadBehind = 32;

class ParquetTexts {
 public:
  ParquetTexts() = default;
  ParquetTexts(std::initializer_list<std::string_view> texts);

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  /// Valid until the next append() or clear().
  std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = begin_of(i);
    return {reinterpret_cast<const char*>(room_.data()) + begin, static_cast<std::size_t>(ends_[i] - begin)};
  }
  /// Bytes of all of them.
  std::uint64_t bytes() const { return begin_of(size()); }

  /// Leaves the memory for those that come next.
  void clear() { ends_.clear(); }
  void reserve(std::size_t texts) { ends_.reserve(texts); }
  /// REQUIRES: kReadBehind bytes may be read behind each.
  void append(std::span<const std::string_view> texts);
  /// For each of `present` the next of `texts`, or, where it is 0, "". REQUIRES: as many as are not 0, and as
  /// above.
  void append(std::span<const std::string_view> texts, std::span<const std::uint8_t> present);

 private:
  std::uint64_t begin_of(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  /// Where the next text comes, with room for these and kReadBehind more.
  std::byte* make_room(std::span<const std::string_view> texts);

  Raw<std::uint64_t> ends_;
  RawBytes room_;  // more than is used
};

}  // namespace stoker::formats
