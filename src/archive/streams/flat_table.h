// Tables of FlatBuffers (https://flatbuffers.dev/internals), the encoding of Arrow's metadata. Every offset
// is checked; an offset outside the bytes reads as 0 and sets is_damaged. Used by arrow.cc.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "codec/load.h"

namespace stoker::archive {

/// The bytes of the tables.
struct FlatBytes {
  std::span<const std::byte> bytes;
  bool is_damaged = false;

  template <typename T>
  T at(std::uint64_t offset) {
    if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset) return codec::load<T>(bytes, offset);
    is_damaged = true;
    return T{};
  }
};

/// A vector of contiguous elements.
struct FlatVector {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

class FlatTable {
 public:
  FlatTable(FlatBytes& bytes, std::uint64_t offset) : bytes_(&bytes), offset_(offset) {
    vtable_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(offset) - bytes.at<std::int32_t>(offset));
    fields_bytes_ = bytes.at<std::uint16_t>(vtable_);
  }
  static FlatTable root(FlatBytes& bytes) { return {bytes, bytes.at<std::uint32_t>(0)}; }

  bool has(unsigned field) const { return place(field) != 0; }
  template <typename T>
  T number(unsigned field, T missing = T{}) const {
    const std::uint64_t at = place(field);
    return at == 0 ? missing : bytes_->at<T>(at);
  }
  FlatTable table(unsigned field) const { return {*bytes_, target(field)}; }
  /// The `i`-th table of a vector of tables.
  FlatTable element(const FlatVector& vector, std::uint64_t i) const {
    const std::uint64_t at = vector.begin + i * sizeof(std::uint32_t);
    return {*bytes_, at + bytes_->at<std::uint32_t>(at)};
  }
  /// A vector of elements of `element_bytes` bytes; empty if it is missing or reaches beyond the end.
  FlatVector vector(unsigned field, std::size_t element_bytes) const {
    if (!has(field)) return {};
    const std::uint64_t at = target(field);
    const FlatVector found{at + sizeof(std::uint32_t), bytes_->at<std::uint32_t>(at)};
    if (found.begin <= bytes_->bytes.size() &&
        found.count <= (bytes_->bytes.size() - found.begin) / element_bytes)
      return found;
    bytes_->is_damaged = true;
    return {};
  }
  std::string_view text(unsigned field) const {
    const FlatVector found = vector(field, 1);
    return {reinterpret_cast<const char*>(bytes_->bytes.data()) + found.begin, found.count};
  }

 private:
  std::uint64_t place(unsigned field) const {
    const std::uint64_t entry = 4 + 2 * std::uint64_t{field};
    if (entry + 2 > fields_bytes_) return 0;
    const auto offset = bytes_->at<std::uint16_t>(vtable_ + entry);
    return offset == 0 ? 0 : offset_ + offset;
  }
  std::uint64_t target(unsigned field) const {
    const std::uint64_t at = place(field);
    return at + bytes_->at<std::uint32_t>(at);
  }

  FlatBytes* bytes_;
  std::uint64_t offset_;
  std::uint64_t vtable_ = 0;
  std::uint64_t fields_bytes_ = 0;
};

}  // namespace stoker::archive
