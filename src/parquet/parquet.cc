#include "parquet/parquet.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/hashes/crc32.h"
#include "base/language/counted.h"
#include "codec/chunks/coders.h"
#include "codec/filters/unpack.h"
#include "codec/load.h"
#include "parquet/columns/column_coder.h"
#include "parquet/columns/convert.h"
#include "parquet/columns/leaf_reader.h"
#include "parquet/pages/page.h"
#include "parquet/pages/values.h"

namespace stoker::parquet {

namespace {

using Type = ParquetLeaf::Type;

constexpr std::uint64_t kTailBytes = 8;  // length of the footer, magic
constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint64_t kFooterLimit = 256u << 20;

// The integer of a slot in decimal digits.
std::string digits(const ParquetValues& values, Type type, std::uint64_t slot) {
  const std::span<const std::byte> numbers = values.numbers;
  const std::size_t at = slot * byte_width(type);
  switch (type) {
    case Type::int8:
      return std::to_string(codec::load<std::int8_t>(numbers, at));
    case Type::uint8:
      return std::to_string(codec::load<std::uint8_t>(numbers, at));
    case Type::int16:
      return std::to_string(codec::load<std::int16_t>(numbers, at));
    case Type::uint16:
      return std::to_string(codec::load<std::uint16_t>(numbers, at));
    case Type::int32:
      return std::to_string(codec::load<std::int32_t>(numbers, at));
    case Type::uint32:
      return std::to_string(codec::load<std::uint32_t>(numbers, at));
    case Type::int64:
      return std::to_string(codec::load<std::int64_t>(numbers, at));
    default:
      return std::to_string(codec::load<std::uint64_t>(numbers, at));
  }
}

}  // namespace

Result<ParquetFile> ParquetFile::open(archive::ReadAt read, std::uint64_t size, std::string subject) {
  ParquetFile file(std::move(read), size, std::move(subject));
  const Status none = corrupt("{}: is not a Parquet file, or is truncated", file.subject_);
  if (size < kMagicBytes + kTailBytes) return none;
  std::array<std::byte, kTailBytes> tail{};
  STOKER_RETURN_IF_ERROR(file.read_(size - kTailBytes, tail));
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + sizeof length, kMagicBytes);
  if (magic == "PARE") return invalid("{}: is encrypted", file.subject_);
  if (magic != "PAR1" || length > size - kMagicBytes - kTailBytes) return none;
  if (length > kFooterLimit)
    return invalid("{}: has a footer of {} bytes (at most 256 MiB)", file.subject_, length);
  std::vector<std::byte> bytes(length);
  STOKER_RETURN_IF_ERROR(file.read_(size - kTailBytes - length, bytes));
  STOKER_ASSIGN_OR_RETURN(footer, read_footer(bytes, file.subject_));
  file.footer_ = std::move(footer);
  for (const SchemaLeaf& leaf : file.footer_.leaves) file.leaves_.push_back(leaf.column);
  return file;
}

std::optional<std::size_t> ParquetFile::find(std::string_view name) const {
  const auto found = std::ranges::find(leaves_, name, &ParquetLeaf::name);
  if (found == leaves_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - leaves_.begin());
}

std::string ParquetFile::column_subject(std::size_t leaf) const {
  return format("{}: column '{}'", subject_, printable(leaves_[leaf].name));
}

Status ParquetFile::check_chunk(const ParquetChunk& chunk, std::size_t leaf) const {
  if (chunk.is_encrypted) return invalid("{}: is encrypted", column_subject(leaf));
  if (chunk.is_external) return invalid("{}: is stored in a different file", column_subject(leaf));
  if (leaves_[leaf].type == Type::other) return invalid("{}: has an unsupported type", column_subject(leaf));
  if (chunk.type != footer_.leaves[leaf].layout.stored.type)
    return corrupt("{}: has different types in a row group and in the file", column_subject(leaf));
  const bool is_inside =
      chunk.begin >= 0 && chunk.bytes >= 0 && static_cast<std::uint64_t>(chunk.begin) <= size_ &&
      static_cast<std::uint64_t>(chunk.bytes) <= size_ - static_cast<std::uint64_t>(chunk.begin);
  return is_inside ? Status() : corrupt("{}: is beyond the end", column_subject(leaf));
}

std::uint64_t ParquetFile::stored_bytes(const ParquetChunk& chunk) const {
  constexpr std::uint64_t kHeader =
      100;  // upper bound of the bytes that a short chunk lacks; extra bytes are ignored
  const std::uint64_t whole =
      static_cast<std::uint64_t>(chunk.bytes) + (footer_.has_short_chunks ? kHeader : 0);
  return std::min(whole, size_ - static_cast<std::uint64_t>(chunk.begin));
}

ChunkPages ParquetFile::pages_of(const ParquetChunk& chunk, std::string_view subject) const {
  return {read_, static_cast<std::uint64_t>(chunk.begin), stored_bytes(chunk), subject};
}

Result<ParquetValues> ParquetFile::read_leaf(std::size_t group, std::size_t leaf,
                                             const ParquetLimits& limits) const {
  ParquetValues values;
  STOKER_RETURN_IF_ERROR(read_leaf(group, leaf, values, limits));
  return values;
}

Status ParquetFile::read_leaf(std::size_t group, std::size_t leaf, ParquetValues& values,
                              const ParquetLimits& limits) const {
  const ParquetGroup& of = footer_.groups[group];
  const ParquetChunk& chunk = of.chunks[leaf];
  STOKER_RETURN_IF_ERROR(check_chunk(chunk, leaf));
  const std::string subject = column_subject(leaf);
  ChunkPages pages = pages_of(chunk, subject);
  std::uint64_t left = limits.values.value;
  return read_leaf_chunk({chunk, footer_.leaves[leaf], of.rows, subject, &left}, pages, values);
}

Result<std::vector<std::string>> ParquetFile::read_texts(std::size_t leaf,
                                                         const ParquetLimits& limits) const {
  const ParquetLeaf& column = leaves_[leaf];
  const bool is_text = column.type == Type::bytes;
  if (column.lists > 0 || (!is_text && !is_integer(column.type)))
    return invalid("{}: holds neither text nor integers", column_subject(leaf));
  std::vector<std::string> texts;
  const std::string subject = column_subject(leaf);
  std::uint64_t left = limits.values.value;
  ParquetValues values;
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    STOKER_RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPages pages = pages_of(chunk, subject);
    STOKER_RETURN_IF_ERROR(
        read_leaf_chunk({chunk, footer_.leaves[leaf], group.rows, subject, &left}, pages, values));
    if (values.slots > left / sizeof(std::string)) return invalid("{}: is too large", subject);
    left -= values.slots * sizeof(std::string);
    for (std::uint64_t slot = 0; slot < values.slots; ++slot) {
      if (is_text)
        texts.emplace_back(values.texts[slot]);
      else
        texts.push_back(values.is_present(slot) ? digits(values, column.type, slot) : "");
    }
  }
  if (texts.size() == rows()) return texts;
  return corrupt("{}: has {} values, the file {}", subject, texts.size(), counted(rows(), "row"));
}

// Reliable statistics of row groups and pages, and reads that skip pages by them.

std::optional<ParquetRange> ParquetFile::range_of(std::size_t group, std::size_t leaf) const {
  const ParquetGroup& of = footer_.groups[group];
  if (of.chunks[leaf].type != footer_.leaves[leaf].layout.stored.type) return std::nullopt;
  return range_in(leaf, of.chunks[leaf].statistics, of.rows);
}

std::optional<ParquetRange> ParquetFile::range_in(std::size_t leaf, const ParquetStatistics& statistics,
                                                  std::uint64_t rows) const {
  const SchemaLeaf& schema = footer_.leaves[leaf];
  if (schema.column.type == Type::other) return std::nullopt;
  ParquetRange range;
  if (schema.layout.has_order && footer_.has_order[leaf]) {
    range.min = convert_bound(schema, statistics.min);
    range.max = convert_bound(schema, statistics.max);
  }
  if (schema.layout.has_old_order) {
    if (!range.min) range.min = convert_bound(schema, statistics.deprecated_min);
    if (!range.max) range.max = convert_bound(schema, statistics.deprecated_max);
  }
  // A single bound was compared with a NaN, or is damaged.
  if (!range.min || !range.max) {
    range.min.reset();
    range.max.reset();
  }
  const bool counts_rows = schema.column.lists == 0 && statistics.null_count && *statistics.null_count >= 0 &&
                           static_cast<std::uint64_t>(*statistics.null_count) <= rows;
  if (counts_rows) range.null_count = static_cast<std::uint64_t>(*statistics.null_count);
  if (!range.min && !range.null_count) return std::nullopt;
  return range;
}

// The page index of a row group's leaf; empty without a usable one.
Result<std::vector<IndexedPage>> ParquetFile::page_index(std::size_t group, std::size_t leaf) const {
  constexpr std::int64_t kLargest = 64 << 20;
  const ParquetGroup& of = footer_.groups[group];
  const ParquetChunk& chunk = of.chunks[leaf];
  const auto bytes_of = [&](const ParquetFileRange& place) -> Result<std::vector<std::byte>> {
    const bool is_there =
        place.bytes > 0 && place.bytes <= kLargest && place.offset > 0 &&
        static_cast<std::uint64_t>(place.offset) <= size_ &&
        static_cast<std::uint64_t>(place.bytes) <= size_ - static_cast<std::uint64_t>(place.offset);
    std::vector<std::byte> bytes(is_there ? static_cast<std::size_t>(place.bytes) : 0);
    if (!is_there) return bytes;
    STOKER_RETURN_IF_ERROR(read_(static_cast<std::uint64_t>(place.offset), bytes));
    return bytes;
  };
  if (leaves_[leaf].lists > 0 || !check_chunk(chunk, leaf).ok() || footer_.has_short_chunks)
    return std::vector<IndexedPage>();
  STOKER_ASSIGN_OR_RETURN(offsets, bytes_of(chunk.offset_index));
  if (offsets.empty()) return std::vector<IndexedPage>();
  STOKER_ASSIGN_OR_RETURN(columns, bytes_of(chunk.column_index));
  return read_page_index(offsets, columns, chunk, of.rows);
}

Result<std::vector<ParquetFile::PageRows>> ParquetFile::pages(std::size_t group, std::size_t leaf) const {
  STOKER_ASSIGN_OR_RETURN(found, page_index(group, leaf));
  std::vector<PageRows> pages;
  for (const IndexedPage& page : found) {
    pages.push_back({.rows = {page.first_row, page.first_row + page.rows},
                     .range = range_in(leaf, page.statistics, page.rows)});
  }
  return pages;
}

Result<std::uint64_t> ParquetFile::read_rows(std::size_t group, std::size_t leaf,
                                             std::span<const RowRange> rows, ParquetValues& values) const {
  const bool are_all = rows.size() == 1 && rows[0].begin == 0 && rows[0].end >= this->rows(group);
  std::vector<IndexedPage> pages;
  if (!are_all) {
    STOKER_ASSIGN_OR_RETURN(found, page_index(group, leaf));
    pages = std::move(found);
  }
  const std::vector<bool> is_selected = select_pages(pages, rows);
  const auto passed_over = static_cast<std::uint64_t>(std::ranges::count(is_selected, false));
  if (passed_over > 0) {
    const ParquetGroup& of = footer_.groups[group];
    const std::string subject = column_subject(leaf);
    std::uint64_t left = ParquetLimits().values.value;
    const Status read = read_selected_pages({of.chunks[leaf], footer_.leaves[leaf], of.rows, subject, &left},
                                            {read_, pages, is_selected}, values);
    if (read.ok()) return passed_over;
    if (read.code() != Code::corrupt) return read;
  }
  // Also if the index does not match the pages: if the pages are damaged, this reports how.
  STOKER_RETURN_IF_ERROR(read_leaf(group, leaf, values));
  return std::uint64_t{0};
}

// Numeric columns as chunked arrays.

Result<codec::ChunkedArray> ParquetFile::column(std::size_t leaf, const Groups& groups,
                                                const Elements& elements) const {
  codec::ChunkedArray array;
  array.name = stoker::format("column '{}'", printable(leaves_[leaf].name));
  array.element_bytes = static_cast<std::uint32_t>(size_of(elements.type));
  array.fill = elements.fill;
  array.chunks = {std::max<std::uint64_t>(1, rows(groups.first))};
  array.chunks.insert(array.chunks.end(), elements.row.begin(), elements.row.end());
  array.shape = array.chunks;
  array.shape[0] = 0;
  array.coder = column_coder(footer_.leaves[leaf], elements.type, elements.row, elements.fill);
  for (std::size_t group = groups.first; group < groups.first + groups.count; ++group) {
    const ParquetChunk& chunk = footer_.groups[group].chunks[leaf];
    STOKER_RETURN_IF_ERROR(check_chunk(chunk, leaf));
    array.shape[0] += rows(group);
    const codec::StoredChunk place{static_cast<std::uint64_t>(chunk.begin), stored_bytes(chunk),
                                   rows(group) | static_cast<std::uint64_t>(chunk.codec)
                                                     << codec::StoredChunk::kCodecShift};
    array.stored_chunks.push_back(place);
  }
  return array;
}

// Value ranges of a column. Reads headers, levels and lengths, and skips payloads, unless a page has a
// checksum.

namespace {

constexpr std::uint64_t kHeaderWindow = 4u << 10;
constexpr std::uint64_t kHeaderLimit = 1u << 20;  // because of statistics
constexpr std::uint64_t kLevelLimit = 16u << 20;

// Walks a column chunk through a sliding window.
class ChunkPlaces {
 public:
  ChunkPlaces(const archive::ReadAt& read, const ParquetChunk& chunk, const LeafLayout& layout,
              const std::string& subject, std::vector<ParquetFile::ValueLocation>& places)
      : read_(read), chunk_(chunk), layout_(layout), subject_(subject), places_(places) {}

  // REQUIRES: the chunk is inside the file.
  Status run(std::uint64_t rows) {
    rows_left_ = rows;
    at_ = static_cast<std::uint64_t>(chunk_.begin);
    end_ = at_ + static_cast<std::uint64_t>(chunk_.bytes);
    if (chunk_.codec != 0) return not_plain("is compressed");
    while (at_ < end_ && rows_left_ > 0) {
      STOKER_ASSIGN_OR_RETURN(page, next_header());
      const std::uint64_t page_end = at_ + static_cast<std::uint64_t>(page.packed_bytes);
      if (page.type == kDictionaryPage) return not_plain("has a dictionary");
      if (page.is_data() && page.crc) STOKER_RETURN_IF_ERROR(check_whole(page));
      if (page.is_data()) STOKER_RETURN_IF_ERROR(add_page(page, page_end));
      at_ = page_end;
    }
    return rows_left_ == 0 ? Status() : damaged();
  }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }
  Status not_plain(std::string_view what) const {
    return invalid("{}: {}, so that single values cannot be read", subject_, what)
        .cure("stoker data convert SOURCE OUT --format parquet");
  }

  // `count` bytes of the file from at_ on, up to the chunk's end.
  Result<std::span<const std::byte>> bytes(std::uint64_t count) {
    constexpr std::uint64_t kWindow = 64u << 10;
    if (count > end_ - at_) return damaged();
    if (at_ < window_at_ || at_ + count > window_at_ + window_.size()) {
      window_.resize(std::min(std::max(kWindow, count), end_ - at_));
      window_at_ = at_;
      STOKER_RETURN_IF_ERROR(read_(at_, window_));
    }
    return std::span<const std::byte>(window_).subspan(at_ - window_at_, count);
  }

  // Verifies a page with a checksum completely, so that an index never has CRCs of damaged bytes.
  Status check_whole(const PageHeader& page) {
    constexpr std::uint64_t kPiece = 1u << 20;
    std::uint32_t crc = 0;
    const std::uint64_t end = at_ + static_cast<std::uint64_t>(page.packed_bytes);
    for (std::uint64_t at = at_; at < end; at += piece_.size()) {
      piece_.resize(std::min(kPiece, end - at));
      STOKER_RETURN_IF_ERROR(read_(at, piece_));
      crc = crc32(piece_, crc);
    }
    return crc == *page.crc ? Status() : crc_mismatch(subject_);
  }

  Result<PageHeader> next_header() {
    for (std::uint64_t window = kHeaderWindow;; window *= 16) {
      const std::uint64_t size = std::min(window, end_ - at_);
      STOKER_ASSIGN_OR_RETURN(text, bytes(size));
      ThriftReader reader(text);
      const PageHeader page = read_page_header(reader);
      if (reader.is_damaged() && size < end_ - at_ && window < kHeaderLimit) continue;
      at_ += reader.position();
      if (reader.is_damaged() || !is_valid(page, end_ - at_)) return damaged();
      return page;
    }
  }

  Status add_page(const PageHeader& page, std::uint64_t end) {
    if (page.encoding != kPlainValues) return not_plain("is not plain");
    const auto count = static_cast<std::uint64_t>(page.values);
    if (page.bytes != page.packed_bytes || count > rows_left_) return damaged();
    const unsigned max_level = layout_.definition;
    std::uint64_t levels = 0;
    if (page.type == kDataPage2) {
      at_ += static_cast<std::uint64_t>(page.repetition_bytes);
      levels = static_cast<std::uint64_t>(page.definition_bytes);
    } else if (max_level > 0 && page.definition_encoding == kBitPacked) {
      return not_plain("has levels of an early Parquet version");
    } else if (max_level > 0) {
      STOKER_ASSIGN_OR_RETURN(length, number(end));
      levels = length;
    }
    if (levels > end - at_ || levels > kLevelLimit) return damaged();
    STOKER_ASSIGN_OR_RETURN(stored, bytes(levels));
    present_.assign(count, static_cast<std::uint8_t>(max_level));
    if (max_level > 0 && !read_levels(stored, kRleValues, max_level, count, present_)) return damaged();
    at_ += levels;
    for (const std::uint8_t level : present_) {
      ParquetFile::ValueLocation place;
      if (level == max_level) {
        STOKER_ASSIGN_OR_RETURN(length, length_of_value(end));
        if (length > end - at_) return damaged();
        place = {.offset = at_, .bytes = length, .is_there = true};
        at_ += length;
      }
      places_.push_back(place);
    }
    rows_left_ -= count;
    return {};
  }

  Result<std::uint32_t> length_of_value(std::uint64_t end) {
    if (layout_.stored.width > 0) return layout_.stored.width;
    return number(end);
  }

  // A length prefix, in a page that ends at `end`.
  Result<std::uint32_t> number(std::uint64_t end) {
    std::uint32_t value = 0;
    if (end - at_ < sizeof value) return damaged();
    STOKER_ASSIGN_OR_RETURN(stored, bytes(sizeof value));
    std::memcpy(&value, stored.data(), sizeof value);
    at_ += sizeof value;
    return value;
  }

  const archive::ReadAt& read_;
  const ParquetChunk& chunk_;
  const LeafLayout& layout_;
  const std::string& subject_;
  std::vector<ParquetFile::ValueLocation>& places_;
  std::uint64_t rows_left_ = 0;
  std::vector<std::uint8_t> present_;  // level of each value of the page
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t window_at_ = 0;
  std::vector<std::byte> window_;
  std::vector<std::byte> piece_;
};

}  // namespace

Result<std::vector<ParquetFile::ValueLocation>> ParquetFile::value_locations(
    std::size_t leaf, const ParquetLimits& limits) const {
  constexpr std::uint64_t kEach = 32;
  std::vector<ValueLocation> places;
  const std::string subject = column_subject(leaf);
  if (leaves_[leaf].type != ParquetLeaf::Type::bytes || leaves_[leaf].lists > 0)
    return invalid("{}: does not hold bytes", subject);
  if (rows() > limits.values.value / kEach) return invalid("{}: is too large", subject);
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    STOKER_RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPlaces reader(read_, chunk, footer_.leaves[leaf].layout, subject, places);
    STOKER_RETURN_IF_ERROR(reader.run(group.rows));
  }
  if (places.size() == rows()) return places;
  return corrupt("{}: has {} values, the file {}", subject, places.size(), counted(rows(), "row"));
}

// Value ranges of a compressed column in its concatenated decompressed pages. Values of a page with a
// dictionary are in the dictionary.

namespace {

using ValueLocation = ParquetFile::ValueLocation;
using Bytes = std::span<const std::byte>;

// The pages of one column chunk.
class PackedPages {
 public:
  PackedPages(const ParquetChunk& chunk, const LeafLayout& layout, const std::string& subject,
              std::uint64_t& left, ParquetFile::Packed& found)
      : chunk_(chunk),
        layout_(layout),
        subject_(subject),
        found_(found),
        decoder_(layout.stored, subject, left) {}

  Status run(ChunkPages& pages, std::uint64_t rows) {
    rows_left_ = rows;
    while (!pages.is_at_end() && rows_left_ > 0) {
      STOKER_ASSIGN_OR_RETURN(page, pages.next());
      STOKER_RETURN_IF_ERROR(add_page(page, pages.offset()));
    }
    return rows_left_ == 0 ? Status() : damaged();
  }

 private:
  // A decompressed page, and its offset in the concatenation.
  struct Unpacked {
    codec::RawBytes buffer;
    Bytes bytes;
    std::uint64_t begin = 0;

    bool has(std::string_view value) const {
      const auto* at = reinterpret_cast<const std::byte*>(value.data());
      return at >= bytes.data() && at + value.size() <= bytes.data() + bytes.size();
    }
    ValueLocation place_of(std::string_view value) const {
      const auto* at = reinterpret_cast<const std::byte*>(value.data());
      return {begin + static_cast<std::uint64_t>(at - bytes.data()), value.size(), true};
    }
  };

  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }

  Status add_page(const Page& page, std::uint64_t offset) {
    const PageHeader& header = page.header;
    if (header.type != kDictionaryPage && !header.is_data()) return {};
    Unpacked& into = header.type == kDictionaryPage ? dictionary_ : data_;
    const MaxLevels max_level{.repetition = 0, .definition = layout_.definition};
    STOKER_ASSIGN_OR_RETURN(parts, open_page(page, chunk_.codec, max_level, into.buffer, subject_));
    into.bytes = parts.unpacked;
    const bool has_positions = header.encoding == kPlainDictionary || header.encoding == kRleDictionary;
    if (!into.bytes.empty() && (header.type == kDictionaryPage || !has_positions)) {
      const auto codec = header.is_packed ? static_cast<std::uint64_t>(chunk_.codec) : 0;
      const codec::StoredChunk place{offset + parts.packed_at, page.stored.size() - parts.packed_at,
                                     into.bytes.size() | codec << codec::StoredChunk::kCodecShift};
      into.begin = found_.pages.shape[0];
      found_.pages.stored_chunks.push_back(place);
      found_.pages.shape[0] += place.unpacked();
    }
    if (header.type == kDictionaryPage) return decoder_.read_dictionary(header, parts.values);
    return add_values(header, parts, has_positions ? dictionary_ : data_);
  }

  Status add_values(const PageHeader& header, const PageParts& parts, const Unpacked& in) {
    const auto count = static_cast<std::uint64_t>(header.values);
    if (count > rows_left_) return damaged();
    rows_left_ -= count;
    const unsigned max_level = layout_.definition;
    levels_.assign(count, 0);
    if (max_level > 0 &&
        !read_levels(parts.definition, header.definition_encoding, max_level, count, levels_)) {
      return damaged();
    }
    const auto present_count = static_cast<std::uint64_t>(std::ranges::count(levels_, max_level));
    STOKER_RETURN_IF_ERROR(decoder_.read_texts(header, parts.values, present_count, texts_));
    auto next = texts_.begin();
    for (const std::uint8_t level : levels_) {
      ValueLocation& place = found_.value_locations.emplace_back();
      if (level != max_level) continue;
      if (next->empty()) {  // whatever its pointer
        place = {.offset = in.begin, .bytes = 0, .is_there = true};
        ++next;
        continue;
      }
      if (!in.has(*next)) return not_contiguous();
      place = in.place_of(*next++);
    }
    return {};
  }

  Status not_contiguous() const {
    return invalid("{}: has values with shared prefixes, so that single values cannot be read", subject_)
        .cure("stoker data convert SOURCE OUT --format parquet");
  }

  const ParquetChunk& chunk_;
  const LeafLayout& layout_;
  const std::string& subject_;
  ParquetFile::Packed& found_;
  ValueReader decoder_;
  std::uint64_t rows_left_ = 0;
  Unpacked dictionary_;
  Unpacked data_;
  std::vector<std::uint8_t> levels_;
  std::vector<std::string_view> texts_;
};

}  // namespace

Result<ParquetFile::Packed> ParquetFile::packed(std::size_t leaf, const ParquetLimits& limits) const {
  constexpr std::uint64_t kEach = 32;
  Packed found;
  found.pages.name = stoker::format("column '{}'", printable(leaves_[leaf].name));
  found.pages.shape = {0};
  found.pages.coder = codec::page_coder();
  const std::string subject = column_subject(leaf);
  if (leaves_[leaf].type != ParquetLeaf::Type::bytes || leaves_[leaf].lists > 0)
    return invalid("{}: does not hold bytes", subject);
  std::uint64_t left = limits.values.value;
  if (rows() > left / kEach) return invalid("{}: is too large", subject);
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    STOKER_RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPages pages = pages_of(chunk, subject);
    PackedPages packed(chunk, footer_.leaves[leaf].layout, subject, left, found);
    STOKER_RETURN_IF_ERROR(packed.run(pages, group.rows));
  }
  if (found.value_locations.size() == rows()) return found;
  return corrupt("{}: has {} values, the file {}", subject, found.value_locations.size(),
                 counted(rows(), "row"));
}

}  // namespace stoker::parquet
