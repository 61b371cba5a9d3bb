// Where the values of a packed column lie: in which page, unpacked, at which byte. Values of a page with a
// dictionary lie in the dictionary.
#include <algorithm>

#include "format/chunked/coders.h"
#include "format/parquet/pages/page.h"
#include "format/parquet/pages/unpack.h"
#include "format/parquet/pages/values.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

namespace {

using Place = ParquetFile::Place;
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
      OK_OR_RETURN(page, pages.next());
      RETURN_IF_ERROR(take(page, pages.offset()));
    }
    return rows_left_ == 0 ? Status() : damaged();
  }

 private:
  // A page unpacked, and where it begins among all unpacked bytes.
  struct Unpacked {
    RawBytes buffer;
    Bytes bytes;
    std::uint64_t begin = 0;

    bool has(std::string_view value) const {
      const auto* at = reinterpret_cast<const std::byte*>(value.data());
      return at >= bytes.data() && at + value.size() <= bytes.data() + bytes.size();
    }
    Place place_of(std::string_view value) const {
      const auto* at = reinterpret_cast<const std::byte*>(value.data());
      return {begin + static_cast<std::uint64_t>(at - bytes.data()), value.size(), true};
    }
  };

  Status damaged() const { return corrupt("{}: a page is damaged", subject_); }

  Status take(const Page& page, std::uint64_t offset) {
    const PageHeader& header = page.header;
    if (header.type != kDictionaryPage && !header.is_data()) return {};
    Unpacked& into = header.type == kDictionaryPage ? dictionary_ : data_;
    const DeepestLevels deepest{.repetition = 0, .definition = layout_.definition};
    OK_OR_RETURN(parts, open_page(page, chunk_.codec, deepest, into.buffer, subject_));
    into.bytes = parts.unpacked;
    const bool has_positions = header.encoding == kPlainDictionary || header.encoding == kRleDictionary;
    if (!into.bytes.empty() && (header.type == kDictionaryPage || !has_positions)) {
      const auto codec = header.is_packed ? static_cast<std::uint64_t>(chunk_.codec) : 0;
      const StoredChunk place{offset + parts.packed_at, page.stored.size() - parts.packed_at,
                              into.bytes.size() | codec << StoredChunk::kCodecShift};
      into.begin = found_.pages.shape[0];
      found_.pages.places.push_back(place);
      found_.pages.shape[0] += place.unpacked();
    }
    if (header.type == kDictionaryPage) return decoder_.take_dictionary(header, parts.values);
    return take_values(header, parts, has_positions ? dictionary_ : data_);
  }

  Status take_values(const PageHeader& header, const PageParts& parts, const Unpacked& in) {
    const auto count = static_cast<std::uint64_t>(header.values);
    if (count > rows_left_) return damaged();
    rows_left_ -= count;
    const unsigned deepest = layout_.definition;
    levels_.assign(count, 0);
    if (deepest > 0 && !read_levels(parts.definition, header.definition_encoding, deepest, count, levels_)) {
      return damaged();
    }
    const auto there = static_cast<std::uint64_t>(std::ranges::count(levels_, deepest));
    RETURN_IF_ERROR(decoder_.read_texts(header, parts.values, there, texts_));
    auto next = texts_.begin();
    for (const std::uint8_t level : levels_) {
      Place& place = found_.places.emplace_back();
      if (level != deepest) continue;
      if (!in.has(*next)) return put_together();
      place = in.place_of(*next++);
    }
    return {};
  }

  Status put_together() const {
    return invalid(
               "{}: has values that are put together from pieces, so that none of them lies anywhere by "
               "itself",
               subject_)
        .cure("stoker data convert SOURCE OUT --format parquet: it writes plain pages");
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
  found.pages.coder = page_coder();
  const std::string subject = shown(leaf);
  if (leaves_[leaf].type != ParquetLeaf::Type::bytes || leaves_[leaf].lists > 0)
    return invalid("{}: does not hold bytes", subject);
  std::uint64_t left = limits.values.value;
  if (rows() > left / kEach) return invalid("{}: is too large", subject);
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPages pages = pages_of(chunk, subject);
    PackedPages packed(chunk, footer_.leaves[leaf].layout, subject, left, found);
    RETURN_IF_ERROR(packed.run(pages, group.rows));
  }
  if (found.places.size() == rows()) return found;
  return corrupt("{}: has {} values, the file {} rows", subject, found.places.size(), rows());
}

}  // namespace stoker::formats
