#include "parquet/columns/leaf_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/language/counted.h"
#include "parquet/columns/convert.h"
#include "parquet/columns/lists.h"
#include "parquet/pages/values.h"

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;
using Flags = std::vector<std::uint8_t>;

// How many of `levels` are `max_level`; eight at a time.
std::uint64_t count_equal(std::span<const std::uint8_t> levels, unsigned max_level) {
  constexpr std::uint64_t kEach = 0x0101010101010101, kTop = 0x80 * kEach;
  constexpr std::size_t kEight = sizeof kEach;
  std::uint64_t others = 0;
  std::size_t i = 0;
  for (; i + kEight <= levels.size(); i += kEight) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, levels.data() + i, kEight);
    eight ^= max_level * kEach;  // 0 where it is
    const std::uint64_t marks = (((eight & ~kTop) + ~kTop) | eight) & kTop;
    others += (marks >> 7) * kEach >> 56;
  }
  for (; i < levels.size(); ++i) others += levels[i] == max_level ? 0 : 1;
  return levels.size() - others;
}

// Scatters numbers of Width bytes to the slots where `present` is 1, and writes 0 elsewhere. One more number
// than needed must be readable.
template <std::size_t Width>
void spread(const std::byte* from, std::span<const std::uint8_t> present, std::byte* out) {
  using Word =
      std::conditional_t<Width == 1, std::uint8_t,
                         std::conditional_t<Width == 2, std::uint16_t,
                                            std::conditional_t<Width == 4, std::uint32_t, std::uint64_t>>>;
  for (const std::uint8_t is_there : present) {
    Word word = 0;
    std::memcpy(&word, from, Width);
    word = static_cast<Word>(word & -Word{is_there});  // branch-free, because nulls are unpredictable
    std::memcpy(out, &word, Width);
    from += Width * is_there;
    out += Width;
  }
}

class LeafReader {
 public:
  LeafReader(const LeafReading& reading, ParquetValues& values)
      : leaf_(reading.leaf),
        reading_(reading),
        max_levels_{.repetition = leaf_.column.lists, .definition = leaf_.layout.definition},
        is_bytes_(leaf_.column.type == ParquetLeaf::Type::bytes),
        decoder_(leaf_.layout.stored, reading.subject, *reading.left),
        values_(values),
        lists_(leaf_.layout, values) {}

  Status run(ChunkPages& pages) {
    const std::uint64_t rows = reading_.rows;
    if (leaf_.column.lists > 0 && reading_.chunk.values < 0) return damaged();
    entries_left_ = leaf_.column.lists > 0 ? static_cast<std::uint64_t>(reading_.chunk.values) : rows;
    reserve();
    while (!pages.is_at_end() && entries_left_ > 0) {
      STOKER_ASSIGN_OR_RETURN(page, pages.next());
      STOKER_RETURN_IF_ERROR(add_page(page));
    }
    lists_.finish();
    if (leaf_.column.lists == 0) values_.rows = values_.slots;
    if (values_.rows == rows && entries_left_ == 0) return {};
    return corrupt("{}: has {} values, the row group {}", reading_.subject, values_.rows,
                   counted(rows, "row"));
  }

  Status run_selected(const PageSelection& selection) {
    entries_left_ = reading_.rows;
    const auto begin = static_cast<std::uint64_t>(reading_.chunk.begin);
    ChunkPages before(selection.read, begin, selection.pages[0].offset - begin, reading_.subject);
    while (!before.is_at_end()) {  // a dictionary
      STOKER_ASSIGN_OR_RETURN(page, before.next());
      STOKER_RETURN_IF_ERROR(add_page(page));
    }
    for (std::size_t i = 0; i < selection.pages.size();) {
      if (!selection.is_selected[i]) {
        STOKER_RETURN_IF_ERROR(add_missing(selection.pages[i++].rows));
        continue;
      }
      std::size_t end = i + 1;  // of consecutive pages
      const auto continues = [&] {
        return selection.is_selected[end] &&
               selection.pages[end].offset ==
                   selection.pages[end - 1].offset + selection.pages[end - 1].bytes;
      };
      while (end < selection.pages.size() && continues()) ++end;
      STOKER_RETURN_IF_ERROR(read_run(selection.read, selection.pages.subspan(i, end - i)));
      i = end;
    }
    values_.rows = values_.slots;
    return values_.rows == reading_.rows ? Status() : page_index_mismatch();
  }

 private:
  Status page_index_mismatch() const {
    return corrupt("{}: has pages that do not match its page index", reading_.subject);
  }

  // Reads consecutive pages.
  Status read_run(const archive::ReadAt& read, std::span<const IndexedPage> run) {
    const std::uint64_t end = run.back().offset + run.back().bytes;
    ChunkPages pages(read, run.front().offset, end - run.front().offset, reading_.subject);
    for (const IndexedPage& one : run) {
      const std::uint64_t slots = values_.slots;
      if (pages.is_at_end()) return page_index_mismatch();
      STOKER_ASSIGN_OR_RETURN(page, pages.next());
      STOKER_RETURN_IF_ERROR(add_page(page));
      if (values_.slots - slots != one.rows) return page_index_mismatch();
    }
    return {};
  }

  Status add_missing(std::uint64_t rows) {
    STOKER_RETURN_IF_ERROR(charge_memory(rows));
    entries_left_ -= std::min(rows, entries_left_);
    if (values_.present.empty()) values_.present.assign(values_.slots, 1);
    values_.present.insert(values_.present.end(), rows, 0);
    values_.slots += rows;
    present_.assign(rows, 0);
    if (is_bytes_) {
      values_.texts.append({}, present_);
    } else {
      const std::uint64_t bytes = rows * byte_width(leaf_.column.type);
      std::fill_n(grow_numbers(rows), bytes, std::byte{});
    }
    return {};
  }

  Status damaged() const { return corrupt("{}: a page is damaged", reading_.subject); }
  Status too_large() const { return invalid("{}: is too large", reading_.subject); }

  // Reserves memory in advance, limited by what the stored bytes make plausible.
  void reserve() {
    constexpr std::uint64_t kCredible = 64;
    const auto stored = static_cast<std::uint64_t>(reading_.chunk.bytes);
    const std::uint64_t entries = std::min({entries_left_, *reading_.left / 8, stored * kCredible});
    if (is_bytes_) values_.texts.reserve(entries);
    values_.numbers.reserve(entries * byte_width(leaf_.column.type));
  }

  Status add_page(const Page& page) {
    const PageHeader& header = page.header;
    const bool is_dictionary = header.type == kDictionaryPage;
    if (!is_dictionary && !header.is_data()) return {};
    codec::RawBytes& buffer = is_dictionary ? dictionary_ : unpacked_;
    STOKER_ASSIGN_OR_RETURN(parts,
                            open_page(page, reading_.chunk.codec, max_levels_, buffer, reading_.subject));
    if (is_dictionary) return decoder_.read_dictionary(header, parts.values);
    const auto count = static_cast<std::uint64_t>(header.values);
    if (count > entries_left_) return damaged();
    entries_left_ -= count;
    STOKER_RETURN_IF_ERROR(charge_memory(count));
    bool is_full = max_levels_.definition == 0 ||
                   constant_level(parts.definition, header.definition_encoding, max_levels_.definition,
                                  count) == max_levels_.definition;
    if (!is_full && !read_levels(parts.definition, header.definition_encoding, max_levels_.definition, count,
                                 definition_)) {
      return damaged();
    }
    const std::uint64_t present_count = is_full ? count : count_equal(definition_, max_levels_.definition);
    if (present_count == count) is_full = true;
    if (!add_entries(header, parts, is_full)) return damaged();
    if (is_full || present_count == present_.size()) return add_all(header, parts.values, present_count);
    return add_with_nulls(header, parts.values, present_count);
  }

  // For a page with nulls, fills present_ with one flag per slot.
  bool add_entries(const PageHeader& header, const PageParts& parts, bool is_full) {
    if (max_levels_.repetition == 0) {
      if (is_full) return true;
      present_.resize(definition_.size());
      for (std::size_t i = 0; i < definition_.size(); ++i)
        present_[i] = definition_[i] == max_levels_.definition ? 1 : 0;
      return true;
    }
    if (!read_levels(parts.repetition, header.repetition_encoding, max_levels_.repetition,
                     static_cast<std::uint64_t>(header.values), repetition_)) {
      return false;
    }
    return is_full ? lists_.add_full(repetition_) : lists_.add(repetition_, definition_, present_);
  }

  // Checks the peak memory for a page's entries, and charges the part that stays allocated.
  Status charge_memory(std::uint64_t entries) {
    constexpr std::uint64_t kWhileRead = 16 + sizeof(std::string_view) + sizeof(std::uint32_t);
    const std::uint64_t each = is_bytes_ ? sizeof(std::uint64_t) : byte_width(leaf_.column.type);
    const std::uint64_t stays = each + 1 + leaf_.column.lists * (sizeof(std::uint64_t) + 1);
    if (entries > *reading_.left / (stays + kWhileRead)) return too_large();
    *reading_.left -= entries * stays;
    return {};
  }

  Status read_texts(const PageHeader& header, Bytes data, std::uint64_t count) {
    STOKER_RETURN_IF_ERROR(decoder_.read_texts(header, data, count, texts_));
    std::uint64_t bytes = 0;
    for (const std::string_view text : texts_) bytes += text.size();
    if (bytes > *reading_.left) return too_large();
    *reading_.left -= bytes;
    return {};
  }

  // Reads `count` converted numbers into `out`.
  Status read_numbers(const PageHeader& header, Bytes data, std::uint64_t count, std::byte* out) {
    const StoredType& type = leaf_.layout.stored;
    if (needs_no_conversion(leaf_))
      return decoder_.read_numbers(header, data, std::span(out, count * type.number_bytes()));
    if (type.is_bytes()) {
      STOKER_RETURN_IF_ERROR(decoder_.read_texts(header, data, count, texts_));
      return convert_numbers(leaf_, {.numbers = {}, .texts = texts_}, out) ? Status() : damaged();
    }
    stored_.resize(count * type.number_bytes());
    STOKER_RETURN_IF_ERROR(decoder_.read_numbers(header, data, stored_));
    return convert_numbers(leaf_, {.numbers = stored_, .texts = {}}, out) ? Status() : damaged();
  }

  // Room for `slots` more numbers.
  std::byte* grow_numbers(std::uint64_t slots) {
    const std::size_t before = values_.numbers.size();
    values_.numbers.resize(before + slots * byte_width(leaf_.column.type));
    return values_.numbers.data() + before;
  }

  // The page's values are all its slots.
  Status add_all(const PageHeader& header, Bytes data, std::uint64_t count) {
    if (!values_.present.empty()) values_.present.insert(values_.present.end(), count, 1);
    values_.slots += count;
    if (!is_bytes_) return read_numbers(header, data, count, grow_numbers(count));
    STOKER_RETURN_IF_ERROR(read_texts(header, data, count));
    values_.texts.append(texts_);
    return {};
  }

  // Adds slots with `present_count` values; present_ holds the flags.
  Status add_with_nulls(const PageHeader& header, Bytes data, std::uint64_t present_count) {
    if (values_.present.empty()) values_.present.assign(values_.slots, 1);
    values_.present.insert(values_.present.end(), present_.begin(), present_.end());
    values_.slots += present_.size();
    if (is_bytes_) {
      STOKER_RETURN_IF_ERROR(read_texts(header, data, present_count));
      values_.texts.append(texts_, present_);
      return {};
    }
    const std::size_t width = byte_width(leaf_.column.type);
    numbers_.resize((present_count + 1) * width);
    STOKER_RETURN_IF_ERROR(read_numbers(header, data, present_count, numbers_.data()));
    std::ranges::fill(std::span(numbers_).last(width), std::byte{});
    const auto copy = width == 1 ? spread<1> : width == 2 ? spread<2> : width == 4 ? spread<4> : spread<8>;
    copy(numbers_.data(), present_, grow_numbers(present_.size()));
    return {};
  }

  const SchemaLeaf& leaf_;
  const LeafReading& reading_;
  MaxLevels max_levels_;
  bool is_bytes_;
  ValueReader decoder_;
  ParquetValues& values_;
  LeafLists lists_;
  std::uint64_t entries_left_ = 0;  // slots, and lists without any
  // Of the current page:
  codec::RawBytes unpacked_;
  Flags definition_;
  Flags repetition_;
  Flags present_;  // for each slot
  std::vector<std::string_view> texts_;
  codec::RawBytes stored_;
  codec::RawBytes numbers_;
  // Of the last dictionary, viewed by texts:
  codec::RawBytes dictionary_;
};

}  // namespace

Status read_selected_pages(const LeafReading& reading, const PageSelection& selection,
                           ParquetValues& values) {
  values.clear();
  return LeafReader(reading, values).run_selected(selection);
}

Status read_leaf_chunk(const LeafReading& reading, ChunkPages& pages, ParquetValues& values) {
  values.clear();
  return LeafReader(reading, values).run(pages);
}

}  // namespace stoker::parquet
