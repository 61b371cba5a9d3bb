#include "format/parquet/column.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/parquet/thrift.h"
#include "format/parquet/unpack.h"

namespace stoker::formats {

static_assert(std::endian::native == std::endian::little, "Parquet is little-endian");

namespace {

using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

// As Parquet numbers them.
constexpr std::int64_t kInt32 = 1;
constexpr std::int64_t kInt64 = 2;
constexpr std::int64_t kByteArray = 6;
constexpr std::int64_t kPlain = 0;
constexpr std::int64_t kPlainDictionary = 2;
constexpr std::int64_t kRleDictionary = 8;
constexpr std::int64_t kDataPage = 0;
constexpr std::int64_t kDictionaryPage = 2;
constexpr std::int64_t kDataPage2 = 3;

constexpr std::int64_t kPageLimit = 256 << 20;

struct PageHeader {
  std::int64_t type = -1;
  std::int64_t bytes = -1;         // unpacked
  std::int64_t packed_bytes = -1;  // as they lie there
  std::int64_t values = -1;
  std::int64_t encoding = -1;
  std::int64_t level_bytes = 0;  // version 2: of repetition and definition levels, which are not packed
  std::int64_t repetition_bytes = 0;
  bool is_packed = true;
};

bool is_integer(const Field& field) { return field.type >= Type::byte && field.type <= Type::i64; }

// Number of values and encoding, which all kinds of pages have; version 2 has more.
void read_kind(ThriftReader& reader, bool is_second, PageHeader& page) {
  const std::int32_t encoding = is_second ? 4 : 2;
  reader.structure([&](const Field& field) {
    if (field.id == 1 && is_integer(field)) {
      page.values = reader.integer();
    } else if (field.id == encoding && is_integer(field)) {
      page.encoding = reader.integer();
    } else if (is_second && field.id == 5 && is_integer(field)) {
      page.level_bytes = reader.integer();
    } else if (is_second && field.id == 6 && is_integer(field)) {
      page.repetition_bytes = reader.integer();
    } else if (is_second && field.id == 7) {
      page.is_packed = field.type == Type::yes;  // the value is in the type
    } else {
      return false;
    }
    return true;
  });
}

PageHeader read_page_header(ThriftReader& reader) {
  PageHeader page;
  reader.structure([&](const Field& field) {
    if (field.type == Type::structure && (field.id == 5 || field.id == 7 || field.id == 8)) {
      read_kind(reader, field.id == 8, page);
      return true;
    }
    if (!is_integer(field)) return false;
    switch (field.id) {
      case 1:
        page.type = reader.integer();
        return true;
      case 2:
        page.bytes = reader.integer();
        return true;
      case 3:
        page.packed_bytes = reader.integer();
        return true;
      default:
        return false;
    }
  });
  return page;
}

// Runs of one number and groups of packed ones, as levels and dictionary positions are stored.
class Hybrid {
 public:
  Hybrid(std::span<const std::byte> bytes, unsigned width) : bytes_(bytes), width_(width) {}

  // The next number; false where there is none.
  bool next(std::uint32_t& value) {
    if (run_ == 0 && packed_ == 0 && !begin_run()) return false;
    if (run_ > 0) {
      --run_;
      value = repeated_;
      return true;
    }
    --packed_;
    std::uint64_t bits = 0;
    const std::size_t byte = bit_ / 8;
    if (byte >= bytes_.size() && width_ > 0) return false;
    std::memcpy(&bits, bytes_.data() + byte, std::min<std::size_t>(sizeof bits, bytes_.size() - byte));
    value = static_cast<std::uint32_t>(bits >> bit_ % 8 & ((std::uint64_t{1} << width_) - 1));
    bit_ += width_;
    if (packed_ == 0) at_ = std::min(bytes_.size(), (bit_ + 7) / 8);
    return true;
  }

 private:
  bool begin_run() {
    std::uint64_t head = 0;
    unsigned shift = 0;
    for (;; shift += 7) {
      if (at_ >= bytes_.size() || shift > 35) return false;
      const auto byte = static_cast<unsigned>(bytes_[at_++]);
      head |= std::uint64_t{byte & 127} << shift;
      if (byte < 128) break;
    }
    if (head & 1) {
      packed_ = (head >> 1) * 8;
      bit_ = at_ * 8;
      // Groups that go beyond the end end with it.
      return packed_ > 0;
    }
    const std::size_t size = (width_ + 7) / 8;
    if (size > bytes_.size() - at_) return false;
    repeated_ = 0;
    std::memcpy(&repeated_, bytes_.data() + at_, size);
    at_ += size;
    run_ = head >> 1;
    return run_ > 0;
  }

  std::span<const std::byte> bytes_;
  unsigned width_;
  std::size_t at_ = 0;
  std::uint64_t run_ = 0;
  std::uint32_t repeated_ = 0;
  std::uint64_t packed_ = 0;
  std::size_t bit_ = 0;
};

class ChunkReader {
 public:
  ChunkReader(const ParquetFile::Chunk& chunk, const ColumnReading& reading, std::vector<std::string>& values)
      : chunk_(chunk), reading_(reading), values_(values), end_(values.size() + chunk.rows) {}

  Status run(std::span<const std::byte> bytes) {
    if (chunk_.type != kByteArray && chunk_.type != kInt32 && chunk_.type != kInt64) {
      return invalid("{}: holds neither text nor whole numbers", reading_.subject);
    }
    while (!bytes.empty() && values_.size() < end_) {
      ThriftReader reader(bytes);
      const PageHeader page = read_page_header(reader);
      bytes = bytes.subspan(reader.position());
      const bool is_damaged = reader.is_damaged() || page.bytes < 0 || page.bytes > kPageLimit ||
                              page.packed_bytes < 0 ||
                              static_cast<std::uint64_t>(page.packed_bytes) > bytes.size();
      if (is_damaged) return damaged();
      RETURN_IF_ERROR(take(page, bytes.first(static_cast<std::size_t>(page.packed_bytes))));
      bytes = bytes.subspan(static_cast<std::size_t>(page.packed_bytes));
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
    if (page.type == kDataPage && chunk_.is_optional) {
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
    if (page.encoding != kPlain && page.encoding != kPlainDictionary) return unknown_encoding();
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
    const bool is_plain = page.encoding == kPlain;
    if (!is_plain && page.encoding != kPlainDictionary && page.encoding != kRleDictionary)
      return unknown_encoding();
    if (static_cast<std::uint64_t>(page.values) > end_ - values_.size()) return damaged();
    unsigned width = 0;
    if (!is_plain && !data.empty()) {
      width = static_cast<unsigned>(data[0]);
      data = data.subspan(1);
    }
    if (width > 32) return damaged();
    Hybrid present(levels, 1);
    Hybrid positions(data, width);
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::uint32_t is_there = 1;
      if (chunk_.is_optional && !present.next(is_there)) return damaged();
      std::string value;
      if (is_there != 0 && is_plain && !plain(data, value)) return damaged();
      if (is_there != 0 && !is_plain) {
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
    if (chunk_.type == kInt32) return number(std::int32_t{});
    if (chunk_.type == kInt64) return number(std::int64_t{});
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
