// How many bytes come out of what is packed, for streams of which nothing else says it.
#include <algorithm>
#include <memory>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "format/chunks/filters.h"

namespace stoker::formats {

namespace {

constexpr std::size_t kThrownAway = 128u << 10;

Status over(std::string_view subject, std::uint64_t most) {
  return invalid("{}: unpacks to over {} bytes, which is not read at once", subject, most);
}

}  // namespace

Result<std::uint64_t> inflated_bytes(Deflate kind, std::span<const std::byte> packed, std::uint64_t most,
                                     std::string_view subject) {
  constexpr int kWindow = 15;
  constexpr int kGzip = 16;  // added to the window: gzip's header instead of zlib's
  const int window = kind == Deflate::gzip ? kWindow + kGzip : kind == Deflate::zlib ? kWindow : -kWindow;
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return unavailable("{}: no memory for zlib", subject);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  std::vector<std::byte> out(kThrownAway);
  std::uint64_t bytes = 0;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  std::size_t left = packed.size();
  for (;;) {
    constexpr std::size_t kMostAtOnce = 1u << 30;
    const std::size_t given = stream.avail_in == 0 ? std::min(left, kMostAtOnce) : 0;
    stream.avail_in += static_cast<uInt>(given);
    left -= given;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    bytes += out.size() - stream.avail_out;
    if (bytes > most) return over(subject, most);
    if (result == Z_OK) continue;
    if (result != Z_STREAM_END) return corrupt("{}: DEFLATE data is damaged", subject);
    // Members of gzip put one after another are read as one.
    if (kind != Deflate::gzip || stream.avail_in + left == 0) return bytes;
    if (inflateReset(&stream) != Z_OK) return internal("{}: zlib does not begin again", subject);
  }
}

Result<std::uint64_t> unzstd_bytes(std::span<const std::byte> packed, std::uint64_t most,
                                   std::string_view subject) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) return unavailable("{}: no memory for zstd", subject);
  std::vector<std::byte> thrown_away(kThrownAway);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::uint64_t bytes = 0;
  for (;;) {
    ZSTD_outBuffer out{thrown_away.data(), thrown_away.size(), 0};
    const std::size_t before = in.pos;
    const std::size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result)) return corrupt("{}: zstd data is damaged", subject);
    bytes += out.pos;
    if (bytes > most) return over(subject, most);
    if (result == 0 && in.pos == in.size) return bytes;
    if (out.pos == 0 && in.pos == before) return corrupt("{}: zstd data is damaged", subject);  // is cut off
  }
}

}  // namespace stoker::formats
