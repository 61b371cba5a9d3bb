#include "codec/filters/unpack.h"

#include <algorithm>
#include <snappy-c.h>

#include "codec/filters/codecs.h"
#include "codec/filters/filters.h"

namespace stoker::codec {

namespace {

bool decompress_snappy(std::span<const std::byte> packed, std::span<std::byte> out) {
  const char* const from = reinterpret_cast<const char*>(packed.data());
  std::size_t size = 0;
  if (snappy_uncompressed_length(from, packed.size(), &size) != SNAPPY_OK || size != out.size()) return false;
  char none = 0;
  char* const to = out.empty() ? &none : reinterpret_cast<char*>(out.data());
  return snappy_uncompress(from, packed.size(), to, &size) == SNAPPY_OK;
}

}  // namespace

Status unpack_page(ParquetCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                   std::string_view subject) {
  // A page without values may have no bytes at all, which is not a valid stream.
  if (packed.empty() && out.empty()) return {};
  constexpr std::string_view kCure = "write it with pyarrow.parquet.write_table(table, file)";
  bool is_whole = false;
  switch (codec) {
    case ParquetCodec::none:
      is_whole = packed.size() == out.size();
      if (is_whole) std::copy(packed.begin(), packed.end(), out.begin());
      break;
    case ParquetCodec::snappy:
      is_whole = decompress_snappy(packed, out);
      break;
    case ParquetCodec::gzip:
      is_whole = inflate(Deflate::gzip, packed, out, subject).ok();
      break;
    case ParquetCodec::zstd:
      is_whole = decompress_zstd(packed, out, subject).ok();
      break;
    case ParquetCodec::lz4_raw:
      is_whole = decompress_lz4(packed, out, subject).ok();
      break;
    case ParquetCodec::brotli:
      return decompress_brotli(packed, out, subject);
    case ParquetCodec::lz4:
      is_whole = decompress_legacy_lz4(packed, out);
      break;
    case ParquetCodec::lzo:
      return invalid("{}: is compressed with LZO, which is not supported", subject).cure(kCure);
    default:
      return invalid("{}: has an unsupported compression (Parquet's number {})", subject,
                     static_cast<std::int32_t>(codec))
          .cure(kCure);
  }
  return is_whole ? Status() : corrupt("{}: a page does not unpack to its size", subject);
}

}  // namespace stoker::codec
