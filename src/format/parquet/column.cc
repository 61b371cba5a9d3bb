#include "format/parquet/column.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/parquet/hybrid.h"
#include "format/parquet/page.h"
#include "format/parquet/unpack.h"

namespace stoker::formats {

static_assert(std::endian::native == std::endian::little, "Parquet is little-endian");

namespace {

class ChunkReader {
 public:
  ChunkReader(const ParquetFile::Chunk& chunk, const ColumnReading& reading, std::vector<std::string>& values)
      : chunk_(chunk), reading_(reading), values_(values), end_(values.size() + chunk.rows) {}

  Status run(std::span<const std::byte> bytes) {
    if (chunk_.type != kParquetByteArray && chunk_.type != kParquetInt32 && chunk_.type != kParquetInt64) {
      return invalid("{}: holds neither text nor whole numbers", reading_.subject);
    }
    while (!bytes.empty() && values_.size() < end_) {
      OK_OR_RETURN(page, take_page(bytes, reading_.subject));
      RETURN_IF_ERROR(take(page.header, page.stored));
    }
    return values_.size() == end_ ? Status() : damaged();
  }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", reading_.subject); }

  Status take(const PageHeader& page, std::span<const std::byte> stored) {
    if (page.type != kDataPage && page.type != kDataPage2 && page.type != kDictionaryPage) return {};
    if (page.values < 0) return damaged();
    // Version 2 leaves the levels in front as they are.
    std::span<const std::byte> levels;
    const std::int64_t ahead = page.type == kDataPage2 ? page.level_bytes : 0;
    if (page.repetition_bytes != 0 || ahead < 0 || ahead > page.packed_bytes || ahead > page.bytes)
      return damaged();
    levels = stored.first(static_cast<std::size_t>(ahead));
    stored = stored.subspan(static_cast<std::size_t>(ahead));
    unpacked_.resize(static_cast<std::size_t>(page.bytes - ahead));
    const auto codec = page.is_packed ? static_cast<ParquetCodec>(chunk_.codec) : ParquetCodec::none;
    RETURN_IF_ERROR(unpack_page(codec, stored, unpacked_, reading_.subject));
    std::span<const std::byte> data = unpacked_;
    if (page.type == kDictionaryPage) return take_dictionary(page, data);
    if (page.type == kDataPage && chunk_.definition > 0) {
      std::uint32_t length = 0;
      if (data.size() < sizeof length) return damaged();
      std::memcpy(&length, data.data(), sizeof length);
      data = data.subspan(sizeof length);
      if (length > data.size()) return damaged();
      levels = data.first(length);
      data = data.subspan(length);
    }
    return take_values(page, levels, data);
  }

  Status take_dictionary(const PageHeader& page, std::span<const std::byte> data) {
    if (page.encoding != kPlainValues && page.encoding != kPlainDictionary) return unknown_encoding();
    dictionary_.clear();
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::string value;
      if (!plain(data, value)) return damaged();
      RETURN_IF_ERROR(count(value));
      dictionary_.push_back(std::move(value));
    }
    return {};
  }

  Status take_values(const PageHeader& page, std::span<const std::byte> levels,
                     std::span<const std::byte> data) {
    const bool is_plain = page.encoding == kPlainValues;
    if (!is_plain && page.encoding != kPlainDictionary && page.encoding != kRleDictionary)
      return unknown_encoding();
    if (static_cast<std::uint64_t>(page.values) > end_ - values_.size()) return damaged();
    unsigned width = 0;
    if (!is_plain && !data.empty()) {
      width = static_cast<unsigned>(data[0]);
      data = data.subspan(1);
    }
    if (width > 32) return damaged();
    const unsigned deepest = chunk_.definition;
    Hybrid present(levels, static_cast<unsigned>(std::bit_width(deepest)));
    Hybrid positions(data, width);
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::uint32_t level = deepest;
      if (deepest > 0 && !present.next(level)) return damaged();
      const bool is_there = level == deepest;
      std::string value;
      if (is_there && is_plain && !plain(data, value)) return damaged();
      if (is_there && !is_plain) {
        std::uint32_t position = 0;
        if (!positions.next(position) || position >= dictionary_.size()) return damaged();
        value = dictionary_[position];
      }
      RETURN_IF_ERROR(count(value));
      values_.push_back(std::move(value));
    }
    return {};
  }

  // The next plain value.
  bool plain(std::span<const std::byte>& data, std::string& value) const {
    const auto number = [&]<typename T>(T into) {
      if (data.size() < sizeof into) return false;
      std::memcpy(&into, data.data(), sizeof into);
      data = data.subspan(sizeof into);
      value = std::to_string(into);
      return true;
    };
    if (chunk_.type == kParquetInt32) return number(std::int32_t{});
    if (chunk_.type == kParquetInt64) return number(std::int64_t{});
    std::uint32_t length = 0;
    if (data.size() < sizeof length) return false;
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (length > data.size()) return false;
    value.assign(reinterpret_cast<const char*>(data.data()), length);
    data = data.subspan(length);
    return true;
  }

  Status count(const std::string& value) {
    constexpr std::uint64_t kEach = 32;
    if (value.size() + kEach > *reading_.left) return invalid("{}: is too large", reading_.subject);
    *reading_.left -= value.size() + kEach;
    return {};
  }

  Status unknown_encoding() const {
    return invalid("{}: has an encoding that is not read (plain and dictionary are)", reading_.subject)
        .cure("write it with pyarrow's use_dictionary=True, or as CSV");
  }

  const ParquetFile::Chunk& chunk_;
  const ColumnReading& reading_;
  std::vector<std::string>& values_;
  std::uint64_t end_;  // of values_ when the chunk is read
  std::vector<std::byte> unpacked_;
  std::vector<std::string> dictionary_;
};

}  // namespace

Status read_column_chunk(const ParquetFile::Chunk& chunk, std::span<const std::byte> bytes,
                         const ColumnReading& reading, std::vector<std::string>& values) {
  return ChunkReader(chunk, reading, values).run(bytes);
}

}  // namespace stoker::formats
