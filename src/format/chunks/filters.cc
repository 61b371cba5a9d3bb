#include "format/chunks/filters.h"

#include <algorithm>
#include <libdeflate.h>
#include <limits>
#include <lz4.h>
#include <memory>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace stoker::formats {

namespace {

constexpr std::size_t kMostAtOnce = std::numeric_limits<std::uint32_t>::max();

Status damaged(std::string_view subject, std::string_view what) {
  return corrupt("{}: {} data is damaged", subject, what);
}

Status too_short(std::string_view subject, std::string_view what, std::size_t expected, std::size_t got) {
  return corrupt("{}: {} data unpacks to {} bytes, expected {}", subject, what, got, expected);
}

Status too_long(std::string_view subject, std::string_view what, std::size_t expected) {
  return corrupt("{}: {} data unpacks to more than the {} bytes expected", subject, what, expected);
}

// What decompressing needs in memory, once for each thread.
libdeflate_decompressor* decompressor() {
  struct Free {
    void operator()(libdeflate_decompressor* held) const { libdeflate_free_decompressor(held); }
  };
  thread_local const std::unique_ptr<libdeflate_decompressor, Free> held(libdeflate_alloc_decompressor());
  return held.get();
}

}  // namespace

Status inflate(Deflate kind, std::span<const std::byte> packed, std::span<std::byte> out,
               std::string_view subject) {
  const std::string_view name = kind == Deflate::gzip ? "gzip" : kind == Deflate::zlib ? "zlib" : "DEFLATE";
  if (packed.size() > kMostAtOnce || out.size() >= kMostAtOnce) {
    return invalid("{}: {} data of 4 GiB or more is not read", subject, name);
  }
  libdeflate_decompressor* const held = decompressor();
  if (held == nullptr) return unavailable("{}: no memory to read {} data", subject, name);
  const auto one_stream = kind == Deflate::gzip   ? libdeflate_gzip_decompress_ex
                          : kind == Deflate::zlib ? libdeflate_zlib_decompress_ex
                                                  : libdeflate_deflate_decompress_ex;
  std::size_t got = 0;
  do {
    std::size_t read = 0;
    std::size_t written = 0;
    const libdeflate_result result =
        one_stream(held, packed.data(), packed.size(), out.data() + got, out.size() - got, &read, &written);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) return too_long(subject, name, out.size());
    if (result != LIBDEFLATE_SUCCESS) return damaged(subject, name);
    packed = packed.subspan(read);
    got += written;
  } while (kind == Deflate::gzip && !packed.empty());
  if (got != out.size()) return too_short(subject, name, out.size(), got);
  return packed.empty() ? Status() : damaged(subject, name);
}

Result<std::string> deflate(Deflate kind, std::span<const std::byte> bytes, int level) {
  constexpr int kWindow = 15;
  constexpr int kGzip = 16;  // added to the window: gzip's header instead of zlib's
  constexpr int kMemory = 8;
  if (bytes.size() >= kMostAtOnce) return invalid("a chunk of 4 GiB or more is not packed by DEFLATE");
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kWindow + (kind == Deflate::gzip ? kGzip : 0), kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return invalid("DEFLATE has no level {} (0 to 9)", level);
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return internal("zlib: did not finish (code {})", result);
  return packed;
}

Status unzstd(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  // A context costs more than a small chunk: each thread keeps one.
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (!context) return unavailable("{}: no memory for zstd", subject);
  const std::size_t got =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall) {
    return too_long(subject, "zstd", out.size());
  }
  if (ZSTD_isError(got)) return damaged(subject, "zstd");
  return got == out.size() ? Status() : too_short(subject, "zstd", out.size(), got);
}

Result<std::string> zstd(std::span<const std::byte> bytes, int level, ZstdChecksum checksum) {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (!context) return unavailable("no memory for zstd");
  ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum == ZstdChecksum::content ? 1 : 0);
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t got =
      ZSTD_compress2(context.get(), packed.data(), packed.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got)) return internal("zstd: {}", ZSTD_getErrorName(got));
  packed.resize(got);
  return packed;
}

Status unlz4(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (packed.size() > kMost || out.size() > kMost)
    return invalid("{}: LZ4 data of 2 GiB or more is not read", subject);
  const int got =
      LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(packed.size()), static_cast<int>(out.size()));
  if (got < 0) return damaged(subject, "LZ4");
  const auto bytes = static_cast<std::size_t>(got);
  return bytes == out.size() ? Status() : too_short(subject, "LZ4", out.size(), bytes);
}

Result<std::string> lz4(std::span<const std::byte> bytes) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE) return invalid("a chunk of 2 GiB or more is not packed by LZ4");
  const auto size = static_cast<int>(bytes.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  const int got = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), packed.data(), size,
                                       static_cast<int>(packed.size()));
  if (got <= 0) return internal("LZ4: did not finish");
  packed.resize(static_cast<std::size_t>(got));
  return packed;
}

}  // namespace stoker::formats
