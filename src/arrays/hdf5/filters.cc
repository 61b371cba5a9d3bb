#include "arrays/hdf5/filters.h"

#include <algorithm>
#include <cstring>

#include "codec/filters/filters.h"
#include "codec/load.h"

namespace stoker::arrays::hdf5 {

namespace {

// https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
enum FilterId : std::uint32_t {
  kDeflate = 1,
  kShuffle = 2,
  kFletcher32 = 3,
  kLzf = 32000,
  kBlosc = 32001,
  kZstd = 32015
};

constexpr std::size_t kChecksumBytes = 4;

bool compresses(std::uint32_t id) { return id != kShuffle && id != kFletcher32; }

Status undo(const Filter& filter, std::span<const std::byte> packed, std::span<std::byte> out,
            std::string_view subject) {
  switch (filter.id) {
    case kDeflate:
      return inflate(codec::Deflate::zlib, packed, out, subject);
    case kLzf:
      return decompress_lzf(packed, out, subject);
    case kBlosc:
      return codec::decompress_blosc(packed, out, subject);
    case kZstd:
      return codec::decompress_zstd(packed, out, subject);
    default:
      break;
  }
  if (packed.size() != out.size())
    return corrupt("{}: holds {} bytes, expected {}", subject, packed.size(), out.size());
  codec::unshuffle_bytes(packed, out, filter.values.empty() ? 1 : filter.values[0]);
  return {};
}

Result<std::span<const std::byte>> without_checksum(std::span<const std::byte> bytes,
                                                    std::string_view subject) {
  if (bytes.size() < kChecksumBytes) return corrupt("{}: too short for its Fletcher-32", subject);
  const auto content = bytes.first(bytes.size() - kChecksumBytes);
  const auto expected = codec::load<std::uint32_t>(bytes, content.size());
  const std::uint32_t found = fletcher32(content);
  // HDF5 before 1.6.3 swapped the bytes of each half on little-endian machines.
  const std::uint32_t turned = (found & 0x00FF00FFu) << 8 | (found >> 8 & 0x00FF00FFu);
  if (expected != found && expected != turned) {
    return corrupt("{}: Fletcher-32 expected {:08x}, found {:08x}", subject, expected, found);
  }
  return content;
}

}  // namespace

Status check_filters(const std::vector<Filter>& filters, std::string_view subject) {
  constexpr std::uint32_t kKnown[] = {kDeflate, kShuffle, kFletcher32, kLzf, kBlosc, kZstd};
  std::size_t compressors = 0;
  for (const Filter& filter : filters) {
    if (std::find(std::begin(kKnown), std::end(kKnown), filter.id) == std::end(kKnown)) {
      return invalid(
                 "{}: filter {} ('{}') is not supported (gzip, shuffle, fletcher32, lzf, zstd and blosc are)",
                 subject, filter.id, printable(filter.name))
          .cure("h5repack -f SHUF -f GZIP=4 IN.h5 OUT.h5");
    }
    compressors += compresses(filter.id) ? 1 : 0;
  }
  if (compressors > 1) return invalid("{}: two compressors in one pipeline are not supported", subject);
  if (filters.size() > 32) return invalid("{}: has more than 32 filters", subject);
  return {};
}

Result<codec::Buffer> undo_filters(const std::vector<Filter>& filters, std::uint32_t skipped,
                                   std::uint64_t bytes, std::span<const std::byte> stored,
                                   std::string_view subject) {
  const auto is_used = [&](std::size_t i) { return (skipped >> i & 1) == 0; };
  std::vector<std::uint64_t> size_before;  // input size of each filter
  std::uint64_t size = bytes;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    size_before.push_back(size);
    if (is_used(i) && filters[i].id == kFletcher32) size += kChecksumBytes;
  }
  codec::Buffer held;
  bool is_held = false;
  std::span<const std::byte> now = stored;
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (!is_used(i)) continue;
    if (filters[i].id == kFletcher32) {
      STOKER_ASSIGN_OR_RETURN(content, without_checksum(now, subject));
      now = content;
      continue;
    }
    codec::Buffer next(size_before[i]);
    if (next.bytes().size() != size_before[i])
      return unavailable("{}: no memory for {} bytes", subject, size_before[i]);
    STOKER_RETURN_IF_ERROR(undo(filters[i], now, next.bytes(), subject));
    held = std::move(next);
    is_held = true;
    now = held.bytes();
  }
  if (now.size() != bytes) return corrupt("{}: holds {} bytes, expected {}", subject, now.size(), bytes);
  if (is_held && held.bytes().size() == bytes) return held;
  codec::Buffer copy(bytes);
  if (copy.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", subject, bytes);
  std::memcpy(copy.bytes().data(), now.data(), bytes);
  return copy;
}

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  const std::size_t words = bytes.size() / 2;
  constexpr std::size_t kAtOnce = 360;  // this many sums fit into 32 bits
  const auto folded = [](std::uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  for (std::size_t i = 0; i < words;) {
    for (const std::size_t end = std::min(words, i + kAtOnce); i < end; ++i) {
      first += static_cast<std::uint32_t>(bytes[2 * i]) << 8 | static_cast<std::uint32_t>(bytes[2 * i + 1]);
      second += first;
    }
    first = folded(first);
    second = folded(second);
  }
  if (bytes.size() % 2 != 0) {
    first += static_cast<std::uint32_t>(bytes.back()) << 8;
    second += first;
    first = folded(first);
    second = folded(second);
  }
  return folded(second) << 16 | folded(first);
}

// Literal runs, and copies of earlier output.
Status decompress_lzf(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  std::size_t in = 0;
  std::size_t at = 0;
  const auto damaged = [&] { return corrupt("{}: LZF data is damaged", subject); };
  const auto next = [&] { return static_cast<std::size_t>(packed[in++]); };
  while (in < packed.size()) {
    const std::size_t control = next();
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > packed.size() - in || count > out.size() - at) return damaged();
      std::memcpy(out.data() + at, packed.data() + in, count);
      in += count;
      at += count;
      continue;
    }
    std::size_t count = control >> 5;
    if (count == 7) {
      if (in == packed.size()) return damaged();
      count += next();
    }
    count += 2;
    if (in == packed.size()) return damaged();
    const std::size_t back = ((control & 31) << 8 | next()) + 1;
    if (back > at || count > out.size() - at) return damaged();
    for (; count > 0; --count, ++at) out[at] = out[at - back];
  }
  if (at != out.size())
    return corrupt("{}: LZF data unpacks to {} bytes, expected {}", subject, at, out.size());
  return {};
}

}  // namespace stoker::arrays::hdf5
