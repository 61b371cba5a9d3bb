// Where the values of a packed column lie: in which page, unpacked, at which byte. Values of a page with a
// dictionary lie in the dictionary.
#include <bit>
#include <cstring>

#include "format/chunked/coders.h"
#include "format/parquet/hybrid.h"
#include "format/parquet/page.h"
#include "format/parquet/parquet.h"
#include "format/parquet/unpack.h"

namespace stoker::formats {

namespace {

using Place = ParquetFile::Place;
using Bytes = std::span<const std::byte>;

// The pages of one column chunk.
class PackedPages {
 public:
  PackedPages(const ParquetFile::Chunk& chunk, const std::string& subject, ParquetFile::Packed& found)
      : chunk_(chunk), subject_(subject), found_(found), rows_left_(chunk.rows) {}

  Status run(Bytes bytes) {
    const std::size_t whole = bytes.size();
    while (!bytes.empty() && rows_left_ > 0) {
      OK_OR_RETURN(page, take_page(bytes, subject_));
      const std::size_t behind = whole - bytes.size();
      const auto offset = static_cast<std::uint64_t>(chunk_.begin) + (behind - page.stored.size());
      RETURN_IF_ERROR(take(page.header, page.stored, offset));
    }
    return rows_left_ == 0 ? Status() : damaged();
  }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }

  Status take(const PageHeader& page, Bytes stored, std::uint64_t offset) {
    if (page.type != kDataPage && page.type != kDataPage2 && page.type != kDictionaryPage) return {};
    const std::int64_t ahead = page.type == kDataPage2 ? page.level_bytes : 0;
    if (page.values < 0 || page.repetition_bytes != 0 || ahead < 0 || ahead > page.packed_bytes ||
        ahead > page.bytes) {
      return damaged();
    }
    Bytes levels = stored.first(static_cast<std::size_t>(ahead));
    stored = stored.subspan(levels.size());
    unpacked_.resize(static_cast<std::size_t>(page.bytes - ahead));
    const auto codec = page.is_packed ? static_cast<ParquetCodec>(chunk_.codec) : ParquetCodec::none;
    RETURN_IF_ERROR(unpack_page(codec, stored, unpacked_, subject_));
    const auto codec_bits = static_cast<std::uint64_t>(codec) << StoredChunk::kCodecShift;
    const StoredChunk place{offset + levels.size(), stored.size(), unpacked_.size() | codec_bits};
    Bytes data = unpacked_;
    if (page.type == kDictionaryPage) return take_dictionary(page, data, place);
    if (page.type == kDataPage && chunk_.definition > 0) {
      std::uint32_t length = 0;
      if (data.size() < sizeof length) return damaged();
      std::memcpy(&length, data.data(), sizeof length);
      if (length > data.size() - sizeof length) return damaged();
      levels = data.subspan(sizeof length, length);
      data = data.subspan(sizeof length + length);
    }
    if (static_cast<std::uint64_t>(page.values) > rows_left_) return damaged();
    rows_left_ -= static_cast<std::uint64_t>(page.values);
    if (page.encoding == kPlainValues) return take_plain(page, levels, data, place);
    if (page.encoding == kPlainDictionary || page.encoding == kRleDictionary)
      return take_numbers(page, levels, data);
    return invalid("{}: has an encoding that is not read (plain and dictionary are)", subject_)
        .cure("write it with pyarrow's use_dictionary=True, or as CSV");
  }

  // A page that holds values: where it begins among all unpacked bytes.
  std::uint64_t add_page(const StoredChunk& place) {
    const std::uint64_t begin = found_.pages.shape[0];
    found_.pages.places.push_back(place);
    found_.pages.shape[0] += place.unpacked();
    return begin;
  }

  // The plain value at `at` of `data`, which begins at `begin`; moves `at` behind it.
  bool plain(Bytes data, std::size_t& at, std::uint64_t begin, Place& place) const {
    std::uint32_t length = 0;
    if (data.size() - at < sizeof length) return false;
    std::memcpy(&length, data.data() + at, sizeof length);
    at += sizeof length;
    if (length > data.size() - at) return false;
    place = {.offset = begin + at, .bytes = length, .is_there = true};
    at += length;
    return true;
  }

  Status take_dictionary(const PageHeader& page, Bytes data, const StoredChunk& stored) {
    if (page.encoding != kPlainValues && page.encoding != kPlainDictionary) return damaged();
    dictionary_.clear();
    const std::uint64_t begin = add_page(stored);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < page.values; ++i) {
      if (!plain(data, at, begin, dictionary_.emplace_back())) return damaged();
    }
    return {};
  }

  Status take_plain(const PageHeader& page, Bytes levels, Bytes data, const StoredChunk& stored) {
    const std::uint64_t begin = add_page(stored) + (stored.unpacked() - data.size());
    Hybrid present(levels, static_cast<unsigned>(std::bit_width(chunk_.definition)));
    std::size_t at = 0;
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::uint32_t level = chunk_.definition;
      if (chunk_.definition > 0 && !present.next(level)) return damaged();
      Place place;
      if (level == chunk_.definition && !plain(data, at, begin, place)) return damaged();
      found_.places.push_back(place);
    }
    return {};
  }

  Status take_numbers(const PageHeader& page, Bytes levels, Bytes data) {
    const unsigned width = data.empty() ? 0 : static_cast<unsigned>(data[0]);
    if (width > 32) return damaged();
    Hybrid present(levels, static_cast<unsigned>(std::bit_width(chunk_.definition)));
    Hybrid numbers(data.empty() ? data : data.subspan(1), width);
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::uint32_t level = chunk_.definition;
      if (chunk_.definition > 0 && !present.next(level)) return damaged();
      Place place;
      if (level == chunk_.definition) {
        std::uint32_t number = 0;
        if (!numbers.next(number) || number >= dictionary_.size()) return damaged();
        place = dictionary_[number];
      }
      found_.places.push_back(place);
    }
    return {};
  }

  const ParquetFile::Chunk& chunk_;
  const std::string& subject_;
  ParquetFile::Packed& found_;
  std::uint64_t rows_left_;
  std::vector<std::byte> unpacked_;
  std::vector<Place> dictionary_;
};

}  // namespace

Result<ParquetFile::Packed> ParquetFile::packed(const std::string& column,
                                                const ParquetLimits& limits) const {
  constexpr std::uint64_t kEach = 32;
  Packed found;
  found.pages.name = stoker::format("column '{}'", printable(column));
  found.pages.shape = {0};
  found.pages.coder = page_coder();
  const std::string subject = shown(column);
  if (rows_ > limits.values.value / kEach) return invalid("{}: is too large", subject);
  for (const Chunk& chunk : chunks_) {
    if (chunk.name != column) continue;
    if (chunk.type != kParquetByteArray) return invalid("{}: does not hold bytes", subject);
    OK_OR_RETURN(bytes, chunk_bytes(chunk));
    RETURN_IF_ERROR(PackedPages(chunk, subject, found).run(bytes));
  }
  if (found.places.size() == rows_) return found;
  return corrupt("{}: has {} values, the file {} rows", subject, found.places.size(), rows_);
}

}  // namespace stoker::formats
