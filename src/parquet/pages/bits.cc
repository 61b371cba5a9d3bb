// Eight numbers of one width take that many whole bytes: they are unpacked at once, by code that the compiler
// makes for each width.
#include "parquet/pages/bits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kEight = 8;

// Bytes from a group's first on that are read for it.
constexpr std::size_t read_bytes(unsigned width) { return (kEight - 1) * width / 8 + kEight + 1; }

inline std::uint64_t word(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <unsigned Width>
constexpr std::uint64_t kMask = Width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << Width % 64) - 1;

// Number `Which` of the eight from `in` on.
template <unsigned Width, unsigned Which>
inline std::uint64_t number(const std::byte* in) {
  constexpr unsigned kBit = Width * Which;
  constexpr unsigned kSkipped = kBit % 8;
  std::uint64_t low = word(in + kBit / 8) >> kSkipped;
  if constexpr (kSkipped + Width > 64)
    low |= static_cast<std::uint64_t>(in[kBit / 8 + sizeof low]) << (64 - kSkipped);
  return low & kMask<Width>;
}

// Booleans: spreads each bit of a byte into a separate byte.
inline void spread_bits(std::byte bits, std::uint8_t* out) {
  constexpr std::uint64_t kEach = 0x0101010101010101, kOwnBit = 0x8040201008040201;
  const std::uint64_t own = static_cast<std::uint64_t>(bits) * kEach & kOwnBit;
  const std::uint64_t truths = (own + 0x7F * kEach) >> 7 & kEach;  // each byte is 0 or has one bit
  std::memcpy(out, &truths, sizeof truths);
}

template <typename T, unsigned Width>
void unpack_groups(const std::byte* in, std::size_t groups, T* out) {
  for (; groups > 0; --groups, in += Width, out += kEight) {
    if constexpr (Width == 1 && sizeof(T) == 1) {
      spread_bits(*in, out);
    } else if constexpr (Width <= 8) {
      const std::uint64_t all = word(in);
      for (unsigned i = 0; i < kEight; ++i) out[i] = static_cast<T>(all >> i * Width & kMask<Width>);
    } else {
      [&]<unsigned... Which>(std::integer_sequence<unsigned, Which...>) {
        ((out[Which] = static_cast<T>(number<Width, Which>(in))), ...);
      }(std::make_integer_sequence<unsigned, kEight>());
    }
  }
}

template <typename T>
using Unpack = void (*)(const std::byte*, std::size_t, T*);

// One for each width.
template <typename T, unsigned... Widths>
constexpr auto unpackers(std::integer_sequence<unsigned, Widths...>) {
  return std::array<Unpack<T>, sizeof...(Widths)>{&unpack_groups<T, Widths>...};
}

template <typename T>
void unpack(Bytes bytes, unsigned width, std::span<T> out) {
  constexpr unsigned kMax = std::numeric_limits<T>::digits;
  static constexpr auto kUnpackers = unpackers<T>(std::make_integer_sequence<unsigned, kMax + 1>());
  if (width == 0) {
    std::ranges::fill(out, T{0});
    return;
  }
  const std::size_t least = read_bytes(width);
  const std::size_t readable = bytes.size() < least ? 0 : (bytes.size() - least) / width + 1;
  const std::size_t groups = std::min(readable, out.size() / kEight);
  kUnpackers[width](bytes.data(), groups, out.data());
  // Groups that are incomplete, or whose reads would pass the end.
  for (std::size_t group = groups; group * kEight < out.size(); ++group) {
    std::array<std::byte, read_bytes(64)> in{};
    std::array<T, kEight> some;
    const Bytes rest = bytes.subspan(std::min(bytes.size(), group * width));
    std::copy_n(rest.begin(), std::min<std::size_t>(rest.size(), width), in.begin());
    kUnpackers[width](in.data(), 1, some.data());
    const std::span<T> to = out.subspan(group * kEight);
    std::copy_n(some.begin(), std::min(to.size(), some.size()), to.begin());
  }
}

}  // namespace

void unpack_bits(Bytes bytes, unsigned width, std::span<std::uint8_t> out) { unpack(bytes, width, out); }
void unpack_bits(Bytes bytes, unsigned width, std::span<std::uint32_t> out) { unpack(bytes, width, out); }
void unpack_bits(Bytes bytes, unsigned width, std::span<std::uint64_t> out) { unpack(bytes, width, out); }

}  // namespace stoker::parquet
