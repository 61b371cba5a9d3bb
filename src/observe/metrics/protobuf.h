// Reads the fields of a Protocol Buffers message, for the records of trackers. Any bytes are safe. No state.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace stoker::observe {

/// One field.
struct ProtoField {
  std::uint64_t number = 0;
  std::uint64_t integer = 0;  ///< of a varint, or the bits of a fixed number
  std::string_view bytes;     ///< of a text or message

  double as_double() const { return std::bit_cast<double>(integer); }
  float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(integer)); }
};

/// Iterates over a message; ends at the first damaged field.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  std::optional<ProtoField> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    ProtoField field{.number = *tag >> 3, .integer = 0, .bytes = {}};
    switch (*tag & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return std::nullopt;
        field.integer = *value;
        return field;
      }
      case 1:
        return fixed(8, &field) ? std::optional(field) : std::nullopt;
      case 2: {
        const auto size = varint();
        if (!size || *size > rest_.size()) return end();
        field.bytes = rest_.substr(0, *size);
        rest_.remove_prefix(*size);
        return field;
      }
      case 5:
        return fixed(4, &field) ? std::optional(field) : std::nullopt;
      default:
        return end();
    }
  }

 private:
  std::optional<ProtoField> end() {
    rest_ = {};
    return std::nullopt;
  }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    rest_ = {};
    return std::nullopt;
  }
  bool fixed(std::size_t size, ProtoField* field) {
    if (rest_.size() < size) {
      rest_ = {};
      return false;
    }
    std::memcpy(&field->integer, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

}  // namespace stoker::observe
