// Vectors without initialization, for buffers that are filled afterwards. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace stoker::codec {

/// Default-initializes elements where std::allocator would zero them.
template <typename T>
struct DefaultInitAllocator : std::allocator<T> {
  DefaultInitAllocator() = default;
  template <typename Other>
  DefaultInitAllocator(const DefaultInitAllocator<Other>& other) noexcept : std::allocator<T>(other) {}

  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... from) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(from)...);
  }
};

/// A vector whose resize() does not initialize. Callers read only elements that they wrote.
template <typename T>
using UninitializedVector = std::vector<T, DefaultInitAllocator<T>>;
using RawBytes = UninitializedVector<std::byte>;

}  // namespace stoker::codec
