// Appends the fields of a Protocol Buffers message to a text. No state.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stoker::track {

inline void append_varint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

template <typename Number>
void append_little_endian(Number value, std::string* out) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->append(bytes, sizeof value);
}

/// Fields: their number, then the value.
inline void put_integer(std::uint64_t number, std::uint64_t value, std::string* out) {
  append_varint(number << 3, out);
  append_varint(value, out);
}
inline void put_double(std::uint64_t number, double value, std::string* out) {
  append_varint(number << 3 | 1, out);
  append_little_endian(value, out);
}
inline void put_bytes(std::uint64_t number, std::string_view bytes, std::string* out) {
  append_varint(number << 3 | 2, out);
  append_varint(bytes.size(), out);
  out->append(bytes);
}
inline void put_float(std::uint64_t number, float value, std::string* out) {
  append_varint(number << 3 | 5, out);
  append_little_endian(value, out);
}

}  // namespace stoker::track
