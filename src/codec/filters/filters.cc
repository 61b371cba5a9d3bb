#include "codec/filters/filters.h"

#include <algorithm>
#include <blosc.h>
#include <cstring>
#include <libdeflate.h>
#include <limits>
#include <lz4.h>
#include <memory>
#include <vector>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace stoker::codec {

namespace {

constexpr std::size_t kMaxAtOnce = std::numeric_limits<std::uint32_t>::max();

Status damaged(std::string_view subject, std::string_view what) {
  return corrupt("{}: {} data is damaged", subject, what);
}

Status too_short(std::string_view subject, std::string_view what, std::size_t expected, std::size_t got) {
  return corrupt("{}: {} data unpacks to {} bytes, expected {}", subject, what, got, expected);
}

Status too_long(std::string_view subject, std::string_view what, std::size_t expected) {
  return corrupt("{}: {} data unpacks to more than the {} bytes expected", subject, what, expected);
}

// Decompressor state, one per thread.
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
  if (packed.size() > kMaxAtOnce || out.size() >= kMaxAtOnce) {
    return invalid("{}: {} data of 4 GiB or more is not supported", subject, name);
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
  if (bytes.size() >= kMaxAtOnce)
    return invalid("a chunk of 4 GiB or more cannot be compressed with DEFLATE");
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

Status decompress_zstd(std::span<const std::byte> packed, std::span<std::byte> out,
                       std::string_view subject) {
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

Result<std::string> compress_zstd(std::span<const std::byte> bytes, int level, ZstdChecksum checksum) {
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

Status decompress_lz4(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  constexpr std::size_t kMax = std::numeric_limits<int>::max();
  if (packed.size() > kMax || out.size() > kMax)
    return invalid("{}: LZ4 data of 2 GiB or more is not supported", subject);
  const int got =
      LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(packed.size()), static_cast<int>(out.size()));
  if (got < 0) return damaged(subject, "LZ4");
  const auto bytes = static_cast<std::size_t>(got);
  return bytes == out.size() ? Status() : too_short(subject, "LZ4", out.size(), bytes);
}

Result<std::string> compress_lz4(std::span<const std::byte> bytes) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE)
    return invalid("a chunk of 2 GiB or more cannot be compressed with LZ4");
  const auto size = static_cast<int>(bytes.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  const int got = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), packed.data(), size,
                                       static_cast<int>(packed.size()));
  if (got <= 0) return internal("LZ4: did not finish");
  packed.resize(static_cast<std::size_t>(got));
  return packed;
}

// Decompressed sizes of streams that do not store them.

namespace {

constexpr std::size_t kDiscardBytes = 128u << 10;

Status exceeds(std::string_view subject, std::uint64_t most) {
  return invalid("{}: unpacks to over {} bytes, the limit of one read", subject, most);
}

}  // namespace

Result<std::uint64_t> inflated_size(Deflate kind, std::span<const std::byte> packed, std::uint64_t most,
                                    std::string_view subject) {
  constexpr int kWindow = 15;
  constexpr int kGzip = 16;  // added to the window: gzip's header instead of zlib's
  const int window = kind == Deflate::gzip ? kWindow + kGzip : kind == Deflate::zlib ? kWindow : -kWindow;
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return unavailable("{}: no memory for zlib", subject);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  std::vector<std::byte> out(kDiscardBytes);
  std::uint64_t bytes = 0;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  std::size_t left = packed.size();
  for (;;) {
    constexpr std::size_t kMaxAtOnce = 1u << 30;
    const std::size_t given = stream.avail_in == 0 ? std::min(left, kMaxAtOnce) : 0;
    stream.avail_in += static_cast<uInt>(given);
    left -= given;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    bytes += out.size() - stream.avail_out;
    if (bytes > most) return exceeds(subject, most);
    if (result == Z_OK) continue;
    if (result != Z_STREAM_END) return corrupt("{}: DEFLATE data is damaged", subject);
    // Concatenated gzip members are read as one.
    if (kind != Deflate::gzip || stream.avail_in + left == 0) return bytes;
    if (inflateReset(&stream) != Z_OK) return internal("{}: zlib cannot be reset", subject);
  }
}

Result<std::uint64_t> zstd_decompressed_size(std::span<const std::byte> packed, std::uint64_t most,
                                             std::string_view subject) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) return unavailable("{}: no memory for zstd", subject);
  std::vector<std::byte> thrown_away(kDiscardBytes);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::uint64_t bytes = 0;
  for (;;) {
    ZSTD_outBuffer out{thrown_away.data(), thrown_away.size(), 0};
    const std::size_t before = in.pos;
    const std::size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result)) return corrupt("{}: zstd data is damaged", subject);
    bytes += out.pos;
    if (bytes > most) return exceeds(subject, most);
    if (result == 0 && in.pos == in.size) return bytes;
    if (out.pos == 0 && in.pos == before) return corrupt("{}: zstd data is damaged", subject);  // is cut off
  }
}

Result<std::uint64_t> blosc_decompressed_size(std::span<const std::byte> packed, std::string_view subject) {
  std::size_t bytes = 0;
  if (packed.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(packed.data(), packed.size(), &bytes) < 0) {
    return corrupt("{}: blosc data is damaged", subject);
  }
  return std::uint64_t{bytes};
}

Status decompress_blosc(std::span<const std::byte> packed, std::span<std::byte> out,
                        std::string_view subject) {
  STOKER_ASSIGN_OR_RETURN(bytes, blosc_decompressed_size(packed, subject));
  if (bytes != out.size()) {
    return corrupt("{}: blosc data unpacks to {} bytes, expected {}", subject, bytes, out.size());
  }
  if (out.empty()) return {};
  const int got = blosc_decompress_ctx(packed.data(), out.data(), out.size(), 1);
  if (got < 0 || static_cast<std::size_t>(got) != out.size())
    return corrupt("{}: blosc data is damaged", subject);
  return {};
}

Result<std::string> compress_blosc(const BloscSettings& settings, std::span<const std::byte> bytes) {
  std::string packed(bytes.size() + BLOSC_MAX_OVERHEAD, '\0');
  const int got = blosc_compress_ctx(settings.level, settings.shuffle,
                                     std::min<std::size_t>(settings.element_bytes, BLOSC_MAX_TYPESIZE),
                                     bytes.size(), bytes.data(), packed.data(), packed.size(),
                                     settings.compressor.c_str(), settings.block_bytes, 1);
  if (got <= 0) return invalid("blosc has no compressor '{}' here", settings.compressor);
  packed.resize(static_cast<std::size_t>(got));
  return packed;
}

namespace {

// With the element's size known, the compiler turns these loops into vector code.
template <std::size_t Bytes>
void spread(const std::byte* in, std::byte* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t b = 0; b < Bytes; ++b) out[b * elements + i] = in[i * Bytes + b];
  }
}

template <std::size_t Bytes>
void gather(const std::byte* in, std::byte* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t b = 0; b < Bytes; ++b) out[i * Bytes + b] = in[b * elements + i];
  }
}

}  // namespace

void shuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes) {
  const std::size_t elements = element_bytes == 0 ? 0 : in.size() / element_bytes;
  if (element_bytes == 2) {
    spread<2>(in.data(), out.data(), elements);
  } else if (element_bytes == 4) {
    spread<4>(in.data(), out.data(), elements);
  } else if (element_bytes == 8) {
    spread<8>(in.data(), out.data(), elements);
  } else {
    for (std::size_t b = 0; b < element_bytes; ++b) {
      for (std::size_t i = 0; i < elements; ++i) out[b * elements + i] = in[i * element_bytes + b];
    }
  }
  const std::size_t whole = elements * element_bytes;
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(whole));
}

void unshuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes) {
  const std::size_t elements = element_bytes == 0 ? 0 : in.size() / element_bytes;
  if (element_bytes == 2) {
    gather<2>(in.data(), out.data(), elements);
  } else if (element_bytes == 4) {
    gather<4>(in.data(), out.data(), elements);
  } else if (element_bytes == 8) {
    gather<8>(in.data(), out.data(), elements);
  } else {
    for (std::size_t i = 0; i < elements; ++i) {
      for (std::size_t b = 0; b < element_bytes; ++b) out[i * element_bytes + b] = in[b * elements + i];
    }
  }
  const std::size_t whole = elements * element_bytes;
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(whole));
}

void swap_bytes(std::span<std::byte> bytes, std::size_t unit) {
  const auto swap_all = [&]<typename T>(T, auto swapped) {
    for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + i, sizeof value);
      value = static_cast<T>(swapped(value));
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  };
  if (unit == 2) {
    swap_all(std::uint16_t{}, [](std::uint16_t v) { return __builtin_bswap16(v); });
  } else if (unit == 4) {
    swap_all(std::uint32_t{}, [](std::uint32_t v) { return __builtin_bswap32(v); });
  } else if (unit == 8) {
    swap_all(std::uint64_t{}, [](std::uint64_t v) { return __builtin_bswap64(v); });
  } else if (unit > 1) {
    for (std::size_t i = 0; i + unit <= bytes.size(); i += unit) {
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                   bytes.begin() + static_cast<std::ptrdiff_t>(i + unit));
    }
  }
}

}  // namespace stoker::codec
