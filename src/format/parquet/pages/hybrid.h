// Parquet's hybrid of runs and packed numbers, from bytes that nobody vouches for. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace stoker::formats {

/// The 8 bytes at `at` as a number, the lowest first; zeros follow behind the end. REQUIRES: at <=
/// bytes.size().
inline std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (bytes.size() - at >= sizeof word) [[likely]]  // of a size that the compiler knows
    std::memcpy(&word, bytes.data() + at, sizeof word);
  else if (at < bytes.size())
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return word;
}

/// `width` bits (at most 32) from bit `bit` of `bytes` on, the lowest first. REQUIRES as word_at().
inline std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t bit, unsigned width) {
  return word_at(bytes, bit / 8) >> bit % 8 & ((std::uint64_t{1} << width) - 1);
}

/// Runs of one number and groups of packed ones, as levels, dictionary positions and truth values are stored.
class Hybrid {
 public:
  Hybrid(std::span<const std::byte> bytes, unsigned width) : bytes_(bytes), width_(width) {}

  /// Appends the next `count` numbers; false where there are not as many.
  template <typename T>
  bool append(std::uint64_t count, std::vector<T>& numbers) {
    while (count > 0) {
      if (run_ == 0 && packed_ == 0 && !begin_run()) return false;
      const std::uint64_t step = std::min(count, run_ > 0 ? run_ : packed_);
      if (run_ > 0) {
        numbers.insert(numbers.end(), step, static_cast<T>(repeated_));
        run_ -= step;
      } else if (!append_packed(step, numbers)) {
        return false;
      }
      count -= step;
    }
    return true;
  }

 private:
  template <typename T>
  bool append_packed(std::uint64_t count, std::vector<T>& numbers) {
    // Groups that go beyond the end end with it.
    if (width_ > 0 && (bit_ + (count - 1) * width_) / 8 >= bytes_.size()) return false;
    const std::size_t before = numbers.size();
    numbers.resize(before + count);
    for (std::uint64_t i = 0; i < count; ++i, bit_ += width_)
      numbers[before + i] = static_cast<T>(bits_at(bytes_, bit_, width_));
    packed_ -= count;
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

}  // namespace stoker::formats
