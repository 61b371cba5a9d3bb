#include "parquet/pages/delta.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "parquet/pages/bits.h"

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;

bool read_varint(Bytes& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    value |= (byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

// 0, -1, 1, -2, ...
bool read_zigzag(Bytes& bytes, std::uint64_t& value) {
  if (!read_varint(bytes, value)) return false;
  value = (value >> 1) ^ (~(value & 1) + 1);
  return true;
}

// Blocks of deltas. Each block has a minimum and is divided into pieces with separate widths.
template <typename T>
class DeltaDecoder {
 public:
  DeltaDecoder(Bytes& bytes, std::span<T> numbers) : bytes_(bytes), left_(numbers) {}

  bool run() {
    constexpr std::uint64_t kMaxInBlock = std::uint64_t{1} << 31;
    std::uint64_t in_block = 0, pieces = 0, total = 0;
    const bool has_head = read_varint(bytes_, in_block) && read_varint(bytes_, pieces) &&
                          read_varint(bytes_, total) && read_zigzag(bytes_, last_);
    if (!has_head || total != left_.size() || in_block == 0 || in_block > kMaxInBlock || pieces == 0 ||
        in_block % pieces != 0) {
      return false;
    }
    in_piece_ = in_block / pieces;
    if (in_piece_ % kUnit != 0) return false;
    if (left_.empty()) return true;
    left_[0] = static_cast<T>(last_);
    left_ = left_.subspan(1);
    while (!left_.empty()) {
      if (!block(pieces)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kUnit = 32;  // pieces have that many numbers, or a multiple

  bool block(std::uint64_t pieces) {
    std::uint64_t least = 0;
    if (!read_zigzag(bytes_, least) || pieces > bytes_.size()) return false;
    const Bytes widths = bytes_.first(pieces);
    bytes_ = bytes_.subspan(pieces);
    for (const std::byte width : widths) {
      // Pieces after the last number are not stored, whatever their width.
      if (left_.empty()) return true;
      if (!piece(static_cast<unsigned>(width), least)) return false;
    }
    return true;
  }

  bool piece(unsigned width, std::uint64_t least) {
    const std::uint64_t stored = in_piece_ / 8 * width;
    if (width > 64 || stored > bytes_.size()) return false;
    const std::span<T> taken = left_.first(std::min<std::uint64_t>(in_piece_, left_.size()));
    std::array<std::uint64_t, kUnit> unit;
    for (std::size_t at = 0; at < taken.size(); at += kUnit) {
      // All of the unit, though it may not all be taken.
      unpack_bits(bytes_.subspan(at / 8 * width), width, unit);
      const std::size_t end = std::min(taken.size(), at + kUnit);
      for (std::size_t i = at; i < end; ++i) {
        last_ += least + unit[i - at];
        taken[i] = static_cast<T>(last_);
      }
    }
    left_ = left_.subspan(taken.size());
    bytes_ = bytes_.subspan(stored);
    return true;
  }

  Bytes& bytes_;
  std::span<T> left_;  // room that is not filled yet
  std::uint64_t in_piece_ = 0;
  std::uint64_t last_ = 0;
};

// Numbers of four bytes or eight, made in a register.
template <typename T>
void join_words(Bytes bytes, std::size_t stride, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    T word = 0;
    for (std::size_t stream = 0; stream < sizeof(T); ++stream)
      word |= static_cast<T>(bytes[stream * stride + i]) << 8 * stream;
    std::memcpy(out + i * sizeof(T), &word, sizeof(T));
  }
}

}  // namespace

bool decode_deltas(Bytes& bytes, std::span<std::uint32_t> numbers) {
  return DeltaDecoder(bytes, numbers).run();
}
bool decode_deltas(Bytes& bytes, std::span<std::uint64_t> numbers) {
  return DeltaDecoder(bytes, numbers).run();
}

bool decode_strings(Bytes& bytes, std::uint64_t count, std::vector<std::string_view>& strings) {
  codec::UninitializedVector<std::uint64_t> lengths(count);
  if (!decode_deltas(bytes, lengths)) return false;
  strings.resize(count);
  auto out = strings.begin();
  for (const std::uint64_t length : lengths) {
    if (length > bytes.size()) return false;  // a negative one is larger than any
    *out++ = {reinterpret_cast<const char*>(bytes.data()), length};
    bytes = bytes.subspan(length);
  }
  return true;
}

bool DeltaStrings::read(Bytes bytes, std::uint64_t count) {
  joined_bytes_ = 0;
  shared_.resize(count);
  if (!decode_deltas(bytes, shared_) || !decode_strings(bytes, count, rests_)) return false;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < rests_.size(); ++i) {
    if (shared_[i] > before) return false;
    before = shared_[i] + rests_[i].size();
    if (shared_[i] > 0) joined_bytes_ += before;
  }
  return true;
}

void DeltaStrings::join(codec::RawBytes& joined, std::vector<std::string_view>& strings) const {
  joined.resize(joined_bytes_ + kReadPadding);
  char* out = reinterpret_cast<char*>(joined.data());
  std::string_view before;
  strings.clear();
  strings.reserve(rests_.size());
  for (std::size_t i = 0; i < rests_.size(); ++i) {
    const std::string_view rest = rests_[i];
    if (shared_[i] == 0) {
      before = rest;
    } else {
      std::copy_n(before.data(), shared_[i], out);
      std::copy_n(rest.data(), rest.size(), out + shared_[i]);
      before = {out, shared_[i] + rest.size()};
      out += before.size();
    }
    strings.push_back(before);
  }
}

bool join_streams(Bytes bytes, std::size_t width, std::uint64_t count, std::span<std::byte> out) {
  if (width == 0 || count > bytes.size() / width) return false;
  const std::size_t stride = bytes.size() / width;
  if (width == sizeof(std::uint32_t)) join_words<std::uint32_t>(bytes, stride, count, out.data());
  if (width == sizeof(std::uint64_t)) join_words<std::uint64_t>(bytes, stride, count, out.data());
  if (width == sizeof(std::uint32_t) || width == sizeof(std::uint64_t)) return true;
  for (std::size_t stream = 0; stream < width; ++stream) {
    const std::byte* from = bytes.data() + stream * stride;
    for (std::size_t i = 0; i < count; ++i) out[i * width + stream] = from[i];
  }
  return true;
}

}  // namespace stoker::parquet
