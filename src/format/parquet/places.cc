// Where the values of a column lie. What is read are headers, levels and lengths; a value is passed over.
#include <bit>
#include <cstring>
#include <optional>

#include "format/parquet/hybrid.h"
#include "format/parquet/page.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kHeaderWindow = 4u << 10;
constexpr std::uint64_t kHeaderLimit = 1u << 20;  // statistics may make a header long
constexpr std::uint64_t kLevelLimit = 16u << 20;

// A column chunk, read through a window that moves from front to back.
class ChunkPlaces {
 public:
  ChunkPlaces(const ReadAt& read, const ParquetFile::Chunk& chunk, const std::string& subject,
              std::vector<ParquetFile::Place>& places)
      : read_(read), chunk_(chunk), subject_(subject), places_(places), rows_left_(chunk.rows) {}

  // The chunk lies inside the file.
  Status run() {
    at_ = static_cast<std::uint64_t>(chunk_.begin);
    end_ = at_ + static_cast<std::uint64_t>(chunk_.bytes);
    if (chunk_.codec != 0) return not_plain("is compressed");
    while (at_ < end_ && rows_left_ > 0) {
      OK_OR_RETURN(page, next_header());
      const std::uint64_t page_end = at_ + static_cast<std::uint64_t>(page.packed_bytes);
      if (page.type == kDictionaryPage) return not_plain("has a dictionary");
      if (page.type == kDataPage || page.type == kDataPage2) RETURN_IF_ERROR(take(page, page_end));
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

  Result<PageHeader> next_header() {
    for (std::uint64_t window = kHeaderWindow;; window *= 16) {
      const std::uint64_t size = std::min(window, end_ - at_);
      OK_OR_RETURN(text, bytes(size));
      ThriftReader reader(text);
      const PageHeader page = read_page_header(reader);
      if (reader.is_damaged() && size < end_ - at_ && window < kHeaderLimit) continue;
      at_ += reader.position();
      const bool holds = !reader.is_damaged() && page.bytes >= 0 && page.packed_bytes >= 0 &&
                         static_cast<std::uint64_t>(page.packed_bytes) <= end_ - at_;
      if (!holds) return damaged();
      return page;
    }
  }

  Status take(const PageHeader& page, std::uint64_t end) {
    if (page.encoding != kPlainValues) return not_plain("is not plain");
    if (page.bytes != page.packed_bytes || page.values < 0 || page.repetition_bytes != 0 ||
        static_cast<std::uint64_t>(page.values) > rows_left_) {
      return damaged();
    }
    std::uint64_t levels = 0;
    if (page.type == kDataPage2) {
      if (page.level_bytes < 0) return damaged();
      levels = static_cast<std::uint64_t>(page.level_bytes);
    } else if (chunk_.definition > 0) {
      OK_OR_RETURN(length, number(end));
      levels = length;
    }
    if (levels > end - at_ || levels > kLevelLimit) return damaged();
    OK_OR_RETURN(stored, bytes(levels));
    const std::vector<std::byte> kept(stored.begin(), stored.end());
    at_ += levels;
    Hybrid present(kept, static_cast<unsigned>(std::bit_width(chunk_.definition)));
    for (std::int64_t i = 0; i < page.values; ++i) {
      std::uint32_t level = chunk_.definition;
      if (chunk_.definition > 0 && !present.next(level)) return damaged();
      ParquetFile::Place place;
      if (level == chunk_.definition) {
        OK_OR_RETURN(length, number(end));
        if (length > end - at_) return damaged();
        place = {.offset = at_, .bytes = length, .is_there = true};
        at_ += length;
      }
      places_.push_back(place);
    }
    rows_left_ -= static_cast<std::uint64_t>(page.values);
    return {};
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
  const ParquetFile::Chunk& chunk_;
  const std::string& subject_;
  std::vector<ParquetFile::Place>& places_;
  std::uint64_t rows_left_;
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t window_at_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace

Result<std::vector<ParquetFile::Place>> ParquetFile::places(const std::string& column,
                                                            const ParquetLimits& limits) const {
  constexpr std::uint64_t kEach = 32;
  std::vector<Place> places;
  const std::string subject = shown(column);
  if (rows_ > limits.values.value / kEach) return invalid("{}: is too large", subject);
  for (const Chunk& chunk : chunks_) {
    if (chunk.name != column) continue;
    if (chunk.type != kParquetByteArray) return invalid("{}: does not hold bytes", subject);
    RETURN_IF_ERROR(check_place(chunk));
    RETURN_IF_ERROR(ChunkPlaces(read_, chunk, subject, places).run());
  }
  if (places.size() == rows_) return places;
  return corrupt("{}: has {} values, the file {} rows", subject, places.size(), rows_);
}

}  // namespace stoker::formats
