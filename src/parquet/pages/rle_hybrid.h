// Parquet's RLE / bit-packing hybrid, from untrusted bytes. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "parquet/pages/bits.h"

namespace stoker::parquet {

/// Decodes runs of one number and groups of bit-packed numbers: levels, dictionary positions and booleans.
class RleHybridDecoder {
 public:
  /// REQUIRES: width <= 32, and at most 8 to read bytes.
  RleHybridDecoder(std::span<const std::byte> bytes, unsigned width) : bytes_(bytes), width_(width) {}

  /// Fills `numbers` with the next ones; false if there are fewer.
  template <typename T>
  bool read(std::span<T> numbers) {
    while (!numbers.empty()) {
      if (run_ == 0 && packed_ == 0 && !begin_run()) return false;
      const auto step =
          static_cast<std::size_t>(std::min<std::uint64_t>(numbers.size(), run_ > 0 ? run_ : packed_));
      const std::span<T> next = numbers.first(step);
      if (run_ > 0) {
        std::ranges::fill(next, static_cast<T>(repeated_));
        run_ -= step;
      } else if (!read_packed(next)) {
        return false;
      }
      numbers = numbers.subspan(step);
    }
    return true;
  }

  /// If the next `count` numbers are one run, consumes them and returns the number.
  std::optional<std::uint32_t> read_run(std::uint64_t count) {
    if (count == 0 || (run_ == 0 && packed_ == 0 && !begin_run()) || run_ < count) return std::nullopt;
    run_ -= count;
    return repeated_;
  }

 private:
  template <typename T>
  bool read_packed(std::span<T> numbers) {
    // Groups beyond the end are truncated.
    if (width_ > 0 && (bit_ + (numbers.size() - 1) * width_) / 8 >= bytes_.size()) return false;
    packed_ -= numbers.size();
    for (; bit_ % 8 != 0 && !numbers.empty(); bit_ += width_, numbers = numbers.subspan(1))
      numbers[0] = static_cast<T>(bits_at(bytes_, bit_, width_));
    if (!numbers.empty()) {
      unpack_bits(bytes_.subspan(bit_ / 8), width_, numbers);
      bit_ += numbers.size() * width_;
    }
    if (packed_ == 0) at_ = std::min<std::size_t>(bytes_.size(), (bit_ + 7) / 8);
    return true;
  }

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
      bit_ = std::uint64_t{at_} * 8;
      return packed_ > 0;
    }
    const std::size_t size = (width_ + 7) / 8;
    if (size > bytes_.size() - at_) return false;
    repeated_ = 0;
    if (size > 0) std::memcpy(&repeated_, bytes_.data() + at_, size);
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
  std::uint64_t bit_ = 0;
};

}  // namespace stoker::parquet
