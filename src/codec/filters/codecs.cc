#include "codec/filters/codecs.h"

#include <cstdint>
#include <dlfcn.h>
#include <limits>
#include <lz4.h>
#include <lz4frame.h>
#include <memory>
#include <string>

#include "base/process.h"
#include "base/thread.h"
#include "codec/filters/filters.h"

namespace stoker::codec {

namespace {

using Bytes = std::span<const std::byte>;

// The next 4 bytes, the highest first.
bool read_uint32_be(Bytes& bytes, std::uint64_t& number) {
  if (bytes.size() < 4) return false;
  number = 0;
  for (const std::byte byte : bytes.first(4)) number = number << 8 | static_cast<std::uint64_t>(byte);
  bytes = bytes.subspan(4);
  return true;
}

// Hadoop's blocks: the decompressed size, then pieces with their compressed sizes, until it is reached.
bool decompress_hadoop_lz4(Bytes packed, std::span<std::byte> out) {
  constexpr std::size_t kMax = std::numeric_limits<int>::max();
  if (packed.size() > kMax || out.size() > kMax) return false;
  while (!packed.empty()) {
    std::uint64_t unpacked = 0;
    if (!read_uint32_be(packed, unpacked) || unpacked > out.size()) return false;
    std::span<std::byte> block = out.first(unpacked);
    out = out.subspan(unpacked);
    while (!block.empty()) {
      std::uint64_t stored = 0;
      if (!read_uint32_be(packed, stored) || stored > packed.size()) return false;
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

bool decompress_lz4_frame(Bytes packed, std::span<std::byte> out) {
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

bool decompress_legacy_lz4(Bytes packed, std::span<std::byte> out) {
  return decompress_hadoop_lz4(packed, out) || decompress_lz4(packed, out, "").ok() ||
         decompress_lz4_frame(packed, out);
}

namespace {

constexpr const char* kVariable = "STOKER_BROTLI_LIBRARY";

using Decompress = int (*)(std::size_t, const std::uint8_t*, std::size_t*, std::uint8_t*);

Result<Decompress> load() {
  const std::optional<std::string> named = environment_value(kVariable);
  const std::string name = named && !named->empty() ? *named : "libbrotlidec.so.1";
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, "BrotliDecoderDecompress");
  if (found != nullptr) return reinterpret_cast<Decompress>(found);
  return unavailable("Brotli: libbrotlidec is missing ({})", ::dlerror())
      .cure("apt-get install libbrotli1, or {}=/path/libbrotlidec.so", kVariable);
}

Result<Decompress> decompress() {
  static Mutex mutex;
  static Decompress loaded = nullptr;  // looked for again after a failure
  MutexLock lock(mutex);
  if (loaded == nullptr) {
    STOKER_ASSIGN_OR_RETURN(found, load());
    loaded = found;
  }
  return loaded;
}

}  // namespace

Status decompress_brotli(std::span<const std::byte> packed, std::span<std::byte> out,
                         std::string_view subject) {
  constexpr int kSuccess = 1;
  const Result<Decompress> call = decompress();
  if (!call.ok()) return call.status().with_context(subject);
  std::size_t got = out.size();
  std::uint8_t none = 0;
  auto* const into = out.empty() ? &none : reinterpret_cast<std::uint8_t*>(out.data());
  const int done = (*call)(packed.size(), reinterpret_cast<const std::uint8_t*>(packed.data()), &got, into);
  if (done == kSuccess && got == out.size()) return {};
  return corrupt("{}: a page does not unpack to its size", subject);
}

}  // namespace stoker::codec
