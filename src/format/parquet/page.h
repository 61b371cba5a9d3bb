// What stands before each page of a Parquet file, and the numbers by which it is told what the page holds.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "format/parquet/thrift.h"

namespace stoker::formats {

// As Parquet numbers them.
constexpr std::int64_t kParquetInt32 = 1;
constexpr std::int64_t kParquetInt64 = 2;
constexpr std::int64_t kParquetByteArray = 6;
constexpr std::int64_t kPlainValues = 0;
constexpr std::int64_t kPlainDictionary = 2;
constexpr std::int64_t kRleDictionary = 8;
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
  std::int64_t level_bytes = 0;  ///< version 2: of repetition and definition levels, which are not packed
  std::int64_t repetition_bytes = 0;
  bool is_packed = true;
  std::optional<std::uint32_t> crc;  ///< CRC-32 (as in gzip) of the page as it lies there, if it has one
};

/// The next structure of `reader`, which says whether it is damaged.
PageHeader read_page_header(ThriftReader& reader);
/// A page, as it lies there.
struct Page {
  PageHeader header;
  std::span<const std::byte> stored;
};
/// Takes the next page off the front of `bytes`. Corrupt, beginning with `subject`, when its header is
/// damaged, when it would not lie in what follows or would unpack to more than 256 MiB, and when its CRC-32
/// is another.
Result<Page> take_page(std::span<const std::byte>& bytes, std::string_view subject);

}  // namespace stoker::formats
