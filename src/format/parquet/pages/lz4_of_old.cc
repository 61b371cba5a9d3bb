#include <limits>
#include <lz4.h>
#include <lz4frame.h>
#include <memory>

#include "format/chunks/filters.h"
#include "format/parquet/pages/codecs.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;

// The next 4 bytes, the highest first.
bool take_number(Bytes& bytes, std::uint64_t& number) {
  if (bytes.size() < 4) return false;
  number = 0;
  for (const std::byte byte : bytes.first(4)) number = number << 8 | static_cast<std::uint64_t>(byte);
  bytes = bytes.subspan(4);
  return true;
}

// Hadoop's: how many bytes come out, then pieces, each with how many go in, until they are there.
bool unhadoop(Bytes packed, std::span<std::byte> out) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (packed.size() > kMost || out.size() > kMost) return false;
  while (!packed.empty()) {
    std::uint64_t unpacked = 0;
    if (!take_number(packed, unpacked) || unpacked > out.size()) return false;
    std::span<std::byte> block = out.first(unpacked);
    out = out.subspan(unpacked);
    while (!block.empty()) {
      std::uint64_t stored = 0;
      if (!take_number(packed, stored) || stored > packed.size()) return false;
      const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()),
                                          reinterpret_cast<char*>(block.data()), static_cast<int>(stored),
                                          static_cast<int>(block.size()));
      if (got <= 0) return false;
      packed = packed.subspan(stored);
      block = block.subspan(static_cast<std::size_t>(got));
    }
  }
  return out.empty();
}

bool unframe(Bytes packed, std::span<std::byte> out) {
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION))) return false;
  const std::unique_ptr<LZ4F_dctx, Free> context(made);
  for (std::size_t step = 1; step > 0;) {
    std::size_t read = packed.size();
    std::size_t written = out.size();
    step = LZ4F_decompress(context.get(), out.data(), &written, packed.data(), &read, nullptr);
    if (LZ4F_isError(step) || (read == 0 && written == 0)) return false;
    packed = packed.subspan(read);
    out = out.subspan(written);
  }
  return packed.empty() && out.empty();
}

}  // namespace

bool unlz4_of_old(Bytes packed, std::span<std::byte> out) {
  return unhadoop(packed, out) || unlz4(packed, out, "").ok() || unframe(packed, out);
}

}  // namespace stoker::formats
