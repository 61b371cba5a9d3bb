// The pages of a column chunk: header, levels and decompressed values. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codec/raw_bytes.h"
#include "parquet/pages/texts.h"
#include "parquet/thrift/thrift.h"
#include "stoker/status.h"

namespace stoker::parquet {

// Parquet's numbers.
constexpr std::int64_t kParquetBoolean = 0;
constexpr std::int64_t kParquetInt32 = 1;
constexpr std::int64_t kParquetInt64 = 2;
constexpr std::int64_t kParquetInt96 = 3;
constexpr std::int64_t kParquetFloat = 4;
constexpr std::int64_t kParquetDouble = 5;
constexpr std::int64_t kParquetByteArray = 6;
constexpr std::int64_t kParquetFixedByteArray = 7;
constexpr int kParquetRequired = 0;
constexpr int kParquetOptional = 1;
constexpr int kParquetRepeated = 2;
constexpr std::int64_t kPlainValues = 0;
constexpr std::int64_t kPlainDictionary = 2;
constexpr std::int64_t kRleValues = 3;
constexpr std::int64_t kBitPacked = 4;  // levels of early writers
constexpr std::int64_t kDeltaBinaryPacked = 5;
constexpr std::int64_t kDeltaLengthByteArray = 6;
constexpr std::int64_t kDeltaByteArray = 7;
constexpr std::int64_t kRleDictionary = 8;
constexpr std::int64_t kByteStreamSplit = 9;
constexpr std::int64_t kDataPage = 0;
constexpr std::int64_t kDictionaryPage = 2;
constexpr std::int64_t kDataPage2 = 3;

/// A parsed page header, unchecked.
struct PageHeader {
  std::int64_t type = -1;
  std::int64_t bytes = -1;         ///< decompressed
  std::int64_t packed_bytes = -1;  ///< as stored
  std::int64_t values = -1;
  std::int64_t encoding = -1;
  /// Version 1: the encoding of the levels, which are compressed with the values.
  std::int64_t definition_encoding = kRleValues;
  std::int64_t repetition_encoding = kRleValues;
  /// Version 2: size of the levels, which precede the values uncompressed.
  std::int64_t definition_bytes = 0;
  std::int64_t repetition_bytes = 0;
  bool is_packed = true;
  std::optional<std::uint32_t> crc;  ///< CRC-32 (as in gzip) of the stored page, if present

  bool is_data() const { return type == kDataPage || type == kDataPage2; }
};

/// Parses the next structure of `reader`, which reports damage.
PageHeader read_page_header(ThriftReader& reader);
/// Whether a page header is plausible with `available` bytes after it.
bool is_valid(const PageHeader& header, std::uint64_t available);
/// A stored page. kReadPadding bytes after it are readable.
struct Page {
  PageHeader header;
  std::span<const std::byte> stored;
};
/// The error for a page with a wrong CRC-32.
Status crc_mismatch(std::string_view subject);

/// The maximum levels of a column; 0 if its pages have no levels of that kind.
struct MaxLevels {
  unsigned repetition = 0;
  unsigned definition = 0;
};

/// The parts of a page. Views the page or the buffer with its decompressed bytes.
struct PageParts {
  std::span<const std::byte> repetition;
  std::span<const std::byte> definition;
  std::span<const std::byte> values;
  /// Offset of the compressed part in the page, and its decompressed bytes. These end with the values, and
  /// kReadPadding bytes after them are readable.
  std::size_t packed_at = 0;
  std::span<const std::byte> unpacked;
};
/// Decompresses a data or dictionary page into `buffer`. A dictionary is always copied there, because it must
/// live as long as the column chunk is read. Fails as unpack_page() does.
Result<PageParts> open_page(const Page& page, std::int64_t codec, MaxLevels max_level,
                            codec::RawBytes& buffer, std::string_view subject);

/// Replaces `levels` by `count` levels up to `max_level` (at most 255). False if there are fewer.
bool read_levels(std::span<const std::byte> bytes, std::int64_t encoding, unsigned max_level,
                 std::uint64_t count, std::vector<std::uint8_t>& levels);
/// The level of all `count` entries, if they are one run.
std::optional<std::uint8_t> constant_level(std::span<const std::byte> bytes, std::int64_t encoding,
                                           unsigned max_level, std::uint64_t count);

}  // namespace stoker::parquet
