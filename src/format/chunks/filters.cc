#include "format/chunks/filters.h"

#include <algorithm>
#include <limits>
#include <lz4.h>
#include <memory>

#include <isa-l/igzip_lib.h>
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

void begin_member(inflate_state& state, Deflate kind) {
  isal_inflate_reset(&state);
  state.crc_flag = kind == Deflate::gzip ? ISAL_GZIP : ISAL_ZLIB;
}

}  // namespace

Status inflate(Deflate kind, std::span<const std::byte> packed, std::span<std::byte> out,
               std::string_view subject) {
  const std::string_view name = kind == Deflate::gzip ? "gzip" : "zlib";
  if (packed.size() > kMostAtOnce || out.size() >= kMostAtOnce) {
    return invalid("{}: {} data of 4 GiB or more is not read", subject, name);
  }
  inflate_state state;
  isal_inflate_init(&state);
  begin_member(state, kind);
  state.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(packed.data()));
  state.avail_in = static_cast<std::uint32_t>(packed.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state.avail_out = static_cast<std::uint32_t>(out.size());
  // Where the output is full already, the end of the stream is still to be read.
  std::uint8_t spare = 0;
  bool is_spare = false;
  for (;;) {
    if (state.avail_out == 0 && !is_spare) {
      state.next_out = &spare;
      state.avail_out = 1;
      is_spare = true;
    }
    const std::uint32_t in_before = state.avail_in;
    if (isal_inflate(&state) != ISAL_DECOMP_OK) return damaged(subject, name);
    if (is_spare && state.avail_out == 0) return too_long(subject, name, out.size());
    if (state.block_state == ISAL_BLOCK_FINISH) {
      if (kind == Deflate::gzip && state.avail_in > 0) {
        begin_member(state, kind);
        continue;
      }
      break;
    }
    if (state.avail_in == in_before && state.avail_in == 0) break;  // the stream ends too early
  }
  const std::size_t got = is_spare ? out.size() : out.size() - state.avail_out;
  if (got != out.size()) return too_short(subject, name, out.size(), got);
  if (state.block_state != ISAL_BLOCK_FINISH || state.avail_in > 0) return damaged(subject, name);
  return {};
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
