#include <algorithm>
#include <cstring>

#include "format/chunks/filters.h"

namespace stoker::formats {

namespace {

// With the element's size known, the compiler turns these loops into vector code.
template <std::size_t Bytes>
void spread(const std::byte* in, std::byte* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t b = 0; b < Bytes; ++b) out[b * elements + i] = in[i * Bytes + b];
  }
}

template <std::size_t Bytes>
void gather(const std::byte* in, std::byte* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t b = 0; b < Bytes; ++b) out[i * Bytes + b] = in[b * elements + i];
  }
}

}  // namespace

void shuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes) {
  const std::size_t elements = element_bytes == 0 ? 0 : in.size() / element_bytes;
  if (element_bytes == 2) {
    spread<2>(in.data(), out.data(), elements);
  } else if (element_bytes == 4) {
    spread<4>(in.data(), out.data(), elements);
  } else if (element_bytes == 8) {
    spread<8>(in.data(), out.data(), elements);
  } else {
    for (std::size_t b = 0; b < element_bytes; ++b) {
      for (std::size_t i = 0; i < elements; ++i) out[b * elements + i] = in[i * element_bytes + b];
    }
  }
  const std::size_t whole = elements * element_bytes;
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(whole));
}

void unshuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes) {
  const std::size_t elements = element_bytes == 0 ? 0 : in.size() / element_bytes;
  if (element_bytes == 2) {
    gather<2>(in.data(), out.data(), elements);
  } else if (element_bytes == 4) {
    gather<4>(in.data(), out.data(), elements);
  } else if (element_bytes == 8) {
    gather<8>(in.data(), out.data(), elements);
  } else {
    for (std::size_t i = 0; i < elements; ++i) {
      for (std::size_t b = 0; b < element_bytes; ++b) out[i * element_bytes + b] = in[b * elements + i];
    }
  }
  const std::size_t whole = elements * element_bytes;
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(whole));
}

void swap_bytes(std::span<std::byte> bytes, std::size_t unit) {
  const auto swap_all = [&]<typename T>(T, auto swapped) {
    for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + i, sizeof value);
      value = static_cast<T>(swapped(value));
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  };
  if (unit == 2) {
    swap_all(std::uint16_t{}, [](std::uint16_t v) { return __builtin_bswap16(v); });
  } else if (unit == 4) {
    swap_all(std::uint32_t{}, [](std::uint32_t v) { return __builtin_bswap32(v); });
  } else if (unit == 8) {
    swap_all(std::uint64_t{}, [](std::uint64_t v) { return __builtin_bswap64(v); });
  } else if (unit > 1) {
    for (std::size_t i = 0; i + unit <= bytes.size(); i += unit) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   bytes.begin() + static_cast<std::ptrdiff_t>(i + unit));
    }
  }
}

}  // namespace stoker::formats
