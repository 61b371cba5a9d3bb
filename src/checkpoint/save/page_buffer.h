// Memory with all pages touched in advance, so that later copies cause no page faults. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "stoker/status.h"

namespace stoker::checkpoint {

/// Zeroed memory, aligned to a page.
class PageBuffer {
 public:
  PageBuffer() = default;
  /// Allocates and touches at least `bytes`, rounded up to whole pages. Unavailable if the system has too
  /// little memory.
  static Result<PageBuffer> create(std::size_t bytes);
  PageBuffer(PageBuffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PageBuffer();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// `bytes` rounded up to a multiple of a 4096-byte page.
constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace stoker::checkpoint
