#include "format/parquet/pages/delta.h"

#include <algorithm>

#include "format/parquet/pages/hybrid.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;

bool take_varint(Bytes& bytes, std::uint64_t& value) {
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
bool take_zigzag(Bytes& bytes, std::uint64_t& value) {
  if (!take_varint(bytes, value)) return false;
  value = (value >> 1) ^ (~(value & 1) + 1);
  return true;
}

// Numbers of up to 64 bits, the lowest first; behind the end are zeros.
std::uint64_t wide_bits_at(Bytes bytes, std::uint64_t bit, unsigned width) {
  const std::size_t at = bit / 8;
  const unsigned skipped = bit % 8;
  std::uint64_t low = word_at(bytes, at) >> skipped;
  if (skipped + width > 64 && bytes.size() - at > sizeof low)
    low |= static_cast<std::uint64_t>(bytes[at + sizeof low]) << (64 - skipped);
  return width == 64 ? low : low & ((std::uint64_t{1} << width) - 1);
}

// Blocks of differences, each of which has a least one and is cut into pieces with a width of their own.
class Deltas {
 public:
  Deltas(Bytes& bytes, std::vector<std::uint64_t>& numbers) : bytes_(bytes), numbers_(numbers) {}

  bool run(std::uint64_t count) {
    constexpr std::uint64_t kMostInBlock = std::uint64_t{1} << 31;
    constexpr std::uint64_t kPieceUnit = 32;
    std::uint64_t in_block = 0, pieces = 0, told = 0;
    const bool has_head = take_varint(bytes_, in_block) && take_varint(bytes_, pieces) &&
                          take_varint(bytes_, told) && take_zigzag(bytes_, last_);
    numbers_.clear();
    if (!has_head || told != count || in_block == 0 || in_block > kMostInBlock || pieces == 0 ||
        in_block % pieces != 0) {
      return false;
    }
    in_piece_ = in_block / pieces;
    if (in_piece_ % kPieceUnit != 0) return false;
    if (count == 0) return true;
    numbers_.reserve(count);
    numbers_.push_back(last_);
    while (numbers_.size() < count) {
      if (!block(pieces, count)) return false;
    }
    return true;
  }

 private:
  bool block(std::uint64_t pieces, std::uint64_t count) {
    std::uint64_t least = 0;
    if (!take_zigzag(bytes_, least) || pieces > bytes_.size()) return false;
    const Bytes widths = bytes_.first(pieces);
    bytes_ = bytes_.subspan(pieces);
    for (const std::byte width : widths) {
      // Pieces behind the last number are not there, whatever their width.
      if (numbers_.size() == count) return true;
      if (!piece(static_cast<unsigned>(width), least, count)) return false;
    }
    return true;
  }

  bool piece(unsigned width, std::uint64_t least, std::uint64_t count) {
    const std::uint64_t stored = in_piece_ / 8 * width;
    if (width > 64 || stored > bytes_.size()) return false;
    const std::uint64_t taken = std::min(in_piece_, count - numbers_.size());
    const Bytes packed = bytes_.first(stored);
    for (std::uint64_t i = 0; i < taken; ++i) {
      last_ += least + (width > 0 ? wide_bits_at(packed, i * width, width) : 0);
      numbers_.push_back(last_);
    }
    bytes_ = bytes_.subspan(stored);
    return true;
  }

  Bytes& bytes_;
  std::vector<std::uint64_t>& numbers_;
  std::uint64_t in_piece_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace

bool take_deltas(Bytes& bytes, std::uint64_t count, std::vector<std::uint64_t>& numbers) {
  return Deltas(bytes, numbers).run(count);
}

bool take_strings(Bytes& bytes, std::uint64_t count, std::vector<std::string_view>& strings) {
  std::vector<std::uint64_t> lengths;
  if (!take_deltas(bytes, count, lengths)) return false;
  strings.reserve(strings.size() + count);
  for (const std::uint64_t length : lengths) {
    if (length > bytes.size()) return false;  // a negative one is larger than any
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), length);
    bytes = bytes.subspan(length);
  }
  return true;
}

bool JoinedStrings::read(Bytes bytes, std::uint64_t count) {
  rests_.clear();
  joined_bytes_ = 0;
  if (!take_deltas(bytes, count, shared_) || !take_strings(bytes, count, rests_)) return false;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < rests_.size(); ++i) {
    if (shared_[i] > before) return false;
    before = shared_[i] + rests_[i].size();
    if (shared_[i] > 0) joined_bytes_ += before;
  }
  return true;
}

void JoinedStrings::join(std::vector<std::byte>& joined, std::vector<std::string_view>& strings) const {
  joined.resize(joined_bytes_);
  char* out = reinterpret_cast<char*>(joined.data());
  std::string_view before;
  strings.reserve(strings.size() + rests_.size());
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
  for (std::size_t stream = 0; stream < width; ++stream) {
    const std::byte* from = bytes.data() + stream * stride;
    for (std::size_t i = 0; i < count; ++i) out[i * width + stream] = from[i];
  }
  return true;
}

}  // namespace stoker::formats
