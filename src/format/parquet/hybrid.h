// Parquet's hybrid of runs and packed numbers, from bytes that nobody vouches for. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker::formats {

/// Runs of one number and groups of packed ones, as levels and dictionary positions are stored.
class Hybrid {
 public:
  Hybrid(std::span<const std::byte> bytes, unsigned width) : bytes_(bytes), width_(width) {}

  /// The next number; false where there is none.
  bool next(std::uint32_t& value) {
    if (run_ == 0 && packed_ == 0 && !begin_run()) return false;
    if (run_ > 0) {
      --run_;
      value = repeated_;
      return true;
    }
    --packed_;
    std::uint64_t bits = 0;
    const std::size_t byte = bit_ / 8;
    if (byte >= bytes_.size() && width_ > 0) return false;
    std::memcpy(&bits, bytes_.data() + byte, std::min<std::size_t>(sizeof bits, bytes_.size() - byte));
    value = static_cast<std::uint32_t>(bits >> bit_ % 8 & ((std::uint64_t{1} << width_) - 1));
    bit_ += width_;
    if (packed_ == 0) at_ = std::min(bytes_.size(), (bit_ + 7) / 8);
    return true;
  }

 private:
  bool begin_run() {
    std::uint64_t head = 0;
    unsigned shift = 0;
    for (;; shift += 7) {
      if (at_ >= bytes_.size() || shift > 35) return false;
      const auto byte = static_cast<unsigned>(bytes_[at_++]);
      head |= std::uint64_t{byte & 127} << shift;
      if (byte < 128) break;
    }
    if (head & 1) {
      packed_ = (head >> 1) * 8;
      bit_ = at_ * 8;
      // Groups that go beyond the end end with it.
      return packed_ > 0;
    }
    const std::size_t size = (width_ + 7) / 8;
    if (size > bytes_.size() - at_) return false;
    repeated_ = 0;
    std::memcpy(&repeated_, bytes_.data() + at_, size);
    at_ += size;
    run_ = head >> 1;
    return run_ > 0;
  }

  std::span<const std::byte> bytes_;
  unsigned width_;
  std::size_t at_ = 0;
  std::uint64_t run_ = 0;
  std::uint32_t repeated_ = 0;
  std::uint64_t packed_ = 0;
  std::size_t bit_ = 0;
};

}  // namespace stoker::formats
