// Bytes that nobody has set: room that is filled by what comes next. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace stoker::formats {

/// Leaves what it makes unset where a vector would make zeros.
template <typename T>
struct Unset : std::allocator<T> {
  Unset() = default;
  template <typename Other>
  Unset(const Unset<Other>& other) noexcept : std::allocator<T>(other) {}

  template <typename Made>
  void construct(Made* at) noexcept {
    ::new (static_cast<void*>(at)) Made;
  }
  template <typename Made, typename... From>
  void construct(Made* at, From&&... from) {
    ::new (static_cast<void*>(at)) Made(std::forward<From>(from)...);
  }
};

/// A vector whose resize() costs nothing but memory. Nothing reads what was not written.
template <typename T>
using Raw = std::vector<T, Unset<T>>;
using RawBytes = Raw<std::byte>;

}  // namespace stoker::formats
