// The pages of a column chunk: what stands before each, and its levels and values unpacked. Thread-safe: no
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/parquet/columns/texts.h"
#include "format/parquet/thrift.h"
#include "format/raw_bytes.h"

namespace stoker::formats {

// As Parquet numbers them.
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
constexpr std::int64_t kBitPacked = 4;  // levels of old writers
constexpr std::int64_t kDeltaBinaryPacked = 5;
constexpr std::int64_t kDeltaLengthByteArray = 6;
constexpr std::int64_t kDeltaByteArray = 7;
constexpr std::int64_t kRleDictionary = 8;
constexpr std::int64_t kByteStreamSplit = 9;
constexpr std::int64_t kDataPage = 0;
constexpr std::int64_t kDictionaryPage = 2;
constexpr std::int64_t kDataPage2 = 3;

/// A page's header. Fields are as the file says them: nothing is checked.
struct PageHeader {
  std::int64_t type = -1;
  std::int64_t bytes = -1;         ///< unpacked
  std::int64_t packed_bytes = -1;  ///< as they lie there
  std::int64_t values = -1;
  std::int64_t encoding = -1;
  /// Version 1: how the levels are stored; they are packed with the values.
  std::int64_t definition_encoding = kRleValues;
  std::int64_t repetition_encoding = kRleValues;
  /// Version 2: the levels' bytes, which lie before the values and are not packed.
  std::int64_t definition_bytes = 0;
  std::int64_t repetition_bytes = 0;
  bool is_packed = true;
  std::optional<std::uint32_t> crc;  ///< CRC-32 (as in gzip) of the page as it lies there, if it has one

  bool is_data() const { return type == kDataPage || type == kDataPage2; }
};

/// The next structure of `reader`, which says whether it is damaged.
PageHeader read_page_header(ThriftReader& reader);
/// Whether a page's header holds, `available` bytes following it.
bool is_sound(const PageHeader& header, std::uint64_t available);
/// A page, as it lies there. kReadBehind bytes may be read behind it.
struct Page {
  PageHeader header;
  std::span<const std::byte> stored;
};
/// What is said of a page whose CRC-32 is not that of its bytes.
Status another_crc(std::string_view subject);

/// The deepest levels of a column's values; 0 where a page has none of that kind.
struct DeepestLevels {
  unsigned repetition = 0;
  unsigned definition = 0;
};

/// A page's parts. Views the page or the buffer that it was unpacked into.
struct PageParts {
  std::span<const std::byte> repetition;
  std::span<const std::byte> definition;
  std::span<const std::byte> values;
  /// What was unpacked, or would have been: where it lies in the page, and all that it gave. The values are
  /// its end, and kReadBehind bytes may be read behind them.
  std::size_t packed_at = 0;
  std::span<const std::byte> unpacked;
};
/// Unpacks a data or dictionary page into `buffer`, where a dictionary is put in any case: it is needed as
/// long as the column chunk is read. Fails as unpack_page() does.
Result<PageParts> open_page(const Page& page, std::int64_t codec, DeepestLevels deepest, RawBytes& buffer,
                            std::string_view subject);

/// Puts `count` levels up to `deepest` (at most 255) in place of what was in `levels`. False where there are
/// not as many.
bool read_levels(std::span<const std::byte> bytes, std::int64_t encoding, unsigned deepest,
                 std::uint64_t count, std::vector<std::uint8_t>& levels);
/// The level that all `count` are, where that is seen at a glance.
std::optional<std::uint8_t> same_level(std::span<const std::byte> bytes, std::int64_t encoding,
                                       unsigned deepest, std::uint64_t count);

}  // namespace stoker::formats
