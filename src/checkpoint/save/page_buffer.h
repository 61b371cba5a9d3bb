// Memory that is there before it is needed: whole pages, touched once, so that copying into them later costs
// a copy and not a page fault each 4 KiB. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/status.h"

namespace stoker::checkpoint {

/// Zeroed memory, aligned to a page.
class PageBuffer {
 public:
  PageBuffer() = default;
  /// Takes and touches at least `bytes`, rounded up to whole pages. Unavailable when the system has not got
  /// them.
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

/// `bytes` rounded up to a multiple of a page of 4096.
constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace stoker::checkpoint
