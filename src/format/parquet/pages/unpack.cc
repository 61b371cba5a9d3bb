#include "format/parquet/pages/unpack.h"

#include <algorithm>
#include <snappy-c.h>

#include "format/chunks/filters.h"
#include "format/parquet/pages/codecs.h"

namespace stoker::formats {

namespace {

bool unsnappy(std::span<const std::byte> packed, std::span<std::byte> out) {
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
  // A page without values may be without any bytes, which is no stream of its codec.
  if (packed.empty() && out.empty()) return {};
  constexpr std::string_view kCure = "write it with pyarrow.parquet.write_table(table, file)";
  bool is_whole = false;
  switch (codec) {
    case ParquetCodec::none:
      is_whole = packed.size() == out.size();
      if (is_whole) std::copy(packed.begin(), packed.end(), out.begin());
      break;
    case ParquetCodec::snappy:
      is_whole = unsnappy(packed, out);
      break;
    case ParquetCodec::gzip:
      is_whole = inflate(Deflate::gzip, packed, out, subject).ok();
      break;
    case ParquetCodec::zstd:
      is_whole = unzstd(packed, out, subject).ok();
      break;
    case ParquetCodec::lz4_raw:
      is_whole = unlz4(packed, out, subject).ok();
      break;
    case ParquetCodec::brotli:
      return unbrotli(packed, out, subject);
    case ParquetCodec::lz4:
      is_whole = unlz4_of_old(packed, out);
      break;
    case ParquetCodec::lzo:
      return invalid("{}: is compressed by LZO, which is not read", subject).cure(kCure);
    default:
      return invalid("{}: is compressed by a method that is not read (Parquet's number {})", subject,
                     static_cast<std::int32_t>(codec))
          .cure(kCure);
  }
  return is_whole ? Status() : corrupt("{}: a page does not unpack to its size", subject);
}

}  // namespace stoker::formats
