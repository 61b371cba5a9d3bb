// Where the values of a column lie. What is read are headers, levels and lengths; a value is passed over,
// unless its page has a checksum.
#include <algorithm>
#include <cstring>

#include "base/hashes/crc32.h"
#include "format/parquet/pages/page.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kHeaderWindow = 4u << 10;
constexpr std::uint64_t kHeaderLimit = 1u << 20;  // statistics may make a header long
constexpr std::uint64_t kLevelLimit = 16u << 20;

// A column chunk, read through a window that moves from front to back.
class ChunkPlaces {
 public:
  ChunkPlaces(const ReadAt& read, const ParquetChunk& chunk, const LeafLayout& layout,
              const std::string& subject, std::vector<ParquetFile::Place>& places)
      : read_(read), chunk_(chunk), layout_(layout), subject_(subject), places_(places) {}

  // The chunk lies inside the file.
  Status run(std::uint64_t rows) {
    rows_left_ = rows;
    at_ = static_cast<std::uint64_t>(chunk_.begin);
    end_ = at_ + static_cast<std::uint64_t>(chunk_.bytes);
    if (chunk_.codec != 0) return not_plain("is compressed");
    while (at_ < end_ && rows_left_ > 0) {
      OK_OR_RETURN(page, next_header());
      const std::uint64_t page_end = at_ + static_cast<std::uint64_t>(page.packed_bytes);
      if (page.type == kDictionaryPage) return not_plain("has a dictionary");
      if (page.is_data() && page.crc) RETURN_IF_ERROR(check_whole(page));
      if (page.is_data()) RETURN_IF_ERROR(take(page, page_end));
      at_ = page_end;
    }
    return rows_left_ == 0 ? Status() : damaged();
  }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }
  Status not_plain(std::string_view what) const {
    return invalid("{}: {}, so that no value of it can be read by itself", subject_, what)
        .cure("stoker data convert SOURCE OUT --format parquet: it writes plain pages");
  }

  // `bytes` of the file from at_ on; nothing beyond the chunk's end.
  Result<std::span<const std::byte>> bytes(std::uint64_t count) {
    constexpr std::uint64_t kWindow = 64u << 10;
    if (count > end_ - at_) return damaged();
    if (at_ < window_at_ || at_ + count > window_at_ + window_.size()) {
      window_.resize(std::min(std::max(kWindow, count), end_ - at_));
      window_at_ = at_;
      RETURN_IF_ERROR(read_(at_, window_));
    }
    return std::span<const std::byte>(window_).subspan(at_ - window_at_, count);
  }

  // A page that has a checksum is read to its end: what an index says of bytes shall not be of damaged ones.
  Status check_whole(const PageHeader& page) {
    constexpr std::uint64_t kPiece = 1u << 20;
    std::uint32_t crc = 0;
    const std::uint64_t end = at_ + static_cast<std::uint64_t>(page.packed_bytes);
    for (std::uint64_t at = at_; at < end; at += piece_.size()) {
      piece_.resize(std::min(kPiece, end - at));
      RETURN_IF_ERROR(read_(at, piece_));
      crc = crc32(piece_, crc);
    }
    return crc == *page.crc ? Status() : another_crc(subject_);
  }

  Result<PageHeader> next_header() {
    for (std::uint64_t window = kHeaderWindow;; window *= 16) {
      const std::uint64_t size = std::min(window, end_ - at_);
      OK_OR_RETURN(text, bytes(size));
      ThriftReader reader(text);
      const PageHeader page = read_page_header(reader);
      if (reader.is_damaged() && size < end_ - at_ && window < kHeaderLimit) continue;
      at_ += reader.position();
      if (reader.is_damaged() || !is_sound(page, end_ - at_)) return damaged();
      return page;
    }
  }

  Status take(const PageHeader& page, std::uint64_t end) {
    if (page.encoding != kPlainValues) return not_plain("is not plain");
    const auto count = static_cast<std::uint64_t>(page.values);
    if (page.bytes != page.packed_bytes || count > rows_left_) return damaged();
    const unsigned deepest = layout_.definition;
    std::uint64_t levels = 0;
    if (page.type == kDataPage2) {
      at_ += static_cast<std::uint64_t>(page.repetition_bytes);
      levels = static_cast<std::uint64_t>(page.definition_bytes);
    } else if (deepest > 0 && page.definition_encoding == kBitPacked) {
      return not_plain("is of an old writer");
    } else if (deepest > 0) {
      OK_OR_RETURN(length, number(end));
      levels = length;
    }
    if (levels > end - at_ || levels > kLevelLimit) return damaged();
    OK_OR_RETURN(stored, bytes(levels));
    present_.assign(count, static_cast<std::uint8_t>(deepest));
    if (deepest > 0 && !read_levels(stored, kRleValues, deepest, count, present_)) return damaged();
    at_ += levels;
    for (const std::uint8_t level : present_) {
      ParquetFile::Place place;
      if (level == deepest) {
        OK_OR_RETURN(length, length_of_value(end));
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

  // A length that stands before what it is the length of, in a page that ends at `end`.
  Result<std::uint32_t> number(std::uint64_t end) {
    std::uint32_t value = 0;
    if (end - at_ < sizeof value) return damaged();
    OK_OR_RETURN(stored, bytes(sizeof value));
    std::memcpy(&value, stored.data(), sizeof value);
    at_ += sizeof value;
    return value;
  }

  const ReadAt& read_;
  const ParquetChunk& chunk_;
  const LeafLayout& layout_;
  const std::string& subject_;
  std::vector<ParquetFile::Place>& places_;
  std::uint64_t rows_left_ = 0;
  std::vector<std::uint8_t> present_;  // of a page: the level of each value
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t window_at_ = 0;
  std::vector<std::byte> window_;
  std::vector<std::byte> piece_;
};

}  // namespace

Result<std::vector<ParquetFile::Place>> ParquetFile::places(std::size_t leaf,
                                                            const ParquetLimits& limits) const {
  constexpr std::uint64_t kEach = 32;
  std::vector<Place> places;
  const std::string subject = shown(leaf);
  if (leaves_[leaf].type != ParquetLeaf::Type::bytes || leaves_[leaf].lists > 0)
    return invalid("{}: does not hold bytes", subject);
  if (rows() > limits.values.value / kEach) return invalid("{}: is too large", subject);
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPlaces reader(read_, chunk, footer_.leaves[leaf].layout, subject, places);
    RETURN_IF_ERROR(reader.run(group.rows));
  }
  if (places.size() == rows()) return places;
  return corrupt("{}: has {} values, the file {} rows", subject, places.size(), rows());
}

}  // namespace stoker::formats
