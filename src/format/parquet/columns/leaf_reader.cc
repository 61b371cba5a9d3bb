#include "format/parquet/columns/leaf_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "format/parquet/columns/convert.h"
#include "format/parquet/columns/lists.h"
#include "format/parquet/pages/values.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;
using Flags = std::vector<std::uint8_t>;

// How many of `levels` are `deepest`; eight at a time.
std::uint64_t count_of(std::span<const std::uint8_t> levels, unsigned deepest) {
  constexpr std::uint64_t kEach = 0x0101010101010101, kTop = 0x80 * kEach;
  constexpr std::size_t kEight = sizeof kEach;
  std::uint64_t others = 0;
  std::size_t i = 0;
  for (; i + kEight <= levels.size(); i += kEight) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, levels.data() + i, kEight);
    eight ^= deepest * kEach;  // 0 where it is
    const std::uint64_t marks = (((eight & ~kTop) + ~kTop) | eight) & kTop;
    others += (marks >> 7) * kEach >> 56;
  }
  for (; i < levels.size(); ++i) others += levels[i] == deepest ? 0 : 1;
  return levels.size() - others;
}

// Numbers of Width bytes to where `present` is 1, 0 to where it is 0. There is one number more than are
// taken.
template <std::size_t Width>
void spread(const std::byte* from, std::span<const std::uint8_t> present, std::byte* out) {
  using Word =
      std::conditional_t<Width == 1, std::uint8_t,
                         std::conditional_t<Width == 2, std::uint16_t,
                                            std::conditional_t<Width == 4, std::uint32_t, std::uint64_t>>>;
  for (const std::uint8_t is_there : present) {
    Word word = 0;
    std::memcpy(&word, from, Width);
    word = static_cast<Word>(word & -Word{is_there});  // no branch: nothing foretells it
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
        deepest_{.repetition = leaf_.is.lists, .definition = leaf_.layout.definition},
        is_bytes_(leaf_.is.type == ParquetLeaf::Type::bytes),
        decoder_(leaf_.layout.stored, reading.subject, *reading.left),
        values_(values),
        lists_(leaf_.layout, values) {}

  Status run(ChunkPages& pages) {
    const std::uint64_t rows = reading_.rows;
    if (leaf_.is.lists > 0 && reading_.chunk.values < 0) return damaged();
    entries_left_ = leaf_.is.lists > 0 ? static_cast<std::uint64_t>(reading_.chunk.values) : rows;
    reserve();
    while (!pages.is_at_end() && entries_left_ > 0) {
      OK_OR_RETURN(page, pages.next());
      RETURN_IF_ERROR(take(page));
    }
    lists_.finish();
    if (leaf_.is.lists == 0) values_.rows = values_.slots;
    if (values_.rows == rows && entries_left_ == 0) return {};
    return corrupt("{}: has {} values, the row group {} rows", reading_.subject, values_.rows, rows);
  }

  Status run_some(const SomePages& some) {
    entries_left_ = reading_.rows;
    const auto begin = static_cast<std::uint64_t>(reading_.chunk.begin);
    ChunkPages before(some.read, begin, some.pages[0].offset - begin, reading_.subject);
    while (!before.is_at_end()) {  // a dictionary
      OK_OR_RETURN(page, before.next());
      RETURN_IF_ERROR(take(page));
    }
    for (std::size_t i = 0; i < some.pages.size();) {
      if (!some.are_wanted[i]) {
        RETURN_IF_ERROR(add_missing(some.pages[i++].rows));
        continue;
      }
      std::size_t end = i + 1;  // of those that lie one behind another
      const auto goes_on = [&] {
        return some.are_wanted[end] &&
               some.pages[end].offset == some.pages[end - 1].offset + some.pages[end - 1].bytes;
      };
      while (end < some.pages.size() && goes_on()) ++end;
      RETURN_IF_ERROR(take_run(some.read, some.pages.subspan(i, end - i)));
      i = end;
    }
    values_.rows = values_.slots;
    return values_.rows == reading_.rows ? Status() : another_index();
  }

 private:
  Status another_index() const {
    return corrupt("{}: has other pages than its page index tells", reading_.subject);
  }

  // Pages one behind another.
  Status take_run(const ReadAt& read, std::span<const IndexedPage> run) {
    const std::uint64_t end = run.back().offset + run.back().bytes;
    ChunkPages pages(read, run.front().offset, end - run.front().offset, reading_.subject);
    for (const IndexedPage& one : run) {
      const std::uint64_t slots = values_.slots;
      if (pages.is_at_end()) return another_index();
      OK_OR_RETURN(page, pages.next());
      RETURN_IF_ERROR(take(page));
      if (values_.slots - slots != one.rows) return another_index();
    }
    return {};
  }

  Status add_missing(std::uint64_t rows) {
    RETURN_IF_ERROR(take_memory(rows));
    entries_left_ -= std::min(rows, entries_left_);
    if (values_.present.empty()) values_.present.assign(values_.slots, 1);
    values_.present.insert(values_.present.end(), rows, 0);
    values_.slots += rows;
    present_.assign(rows, 0);
    if (is_bytes_) {
      values_.texts.append({}, present_);
    } else {
      const std::uint64_t bytes = rows * byte_width(leaf_.is.type);
      std::fill_n(more_numbers(rows), bytes, std::byte{});
    }
    return {};
  }

  Status damaged() const { return corrupt("{}: a page is damaged", reading_.subject); }
  Status too_large() const { return invalid("{}: is too large", reading_.subject); }

  // Room for all at once, as far as so many stored bytes make it credible.
  void reserve() {
    constexpr std::uint64_t kCredible = 64;
    const auto stored = static_cast<std::uint64_t>(reading_.chunk.bytes);
    const std::uint64_t entries = std::min({entries_left_, *reading_.left / 8, stored * kCredible});
    if (is_bytes_) values_.texts.reserve(entries);
    values_.numbers.reserve(entries * byte_width(leaf_.is.type));
  }

  Status take(const Page& page) {
    const PageHeader& header = page.header;
    const bool is_dictionary = header.type == kDictionaryPage;
    if (!is_dictionary && !header.is_data()) return {};
    RawBytes& buffer = is_dictionary ? dictionary_ : unpacked_;
    OK_OR_RETURN(parts, open_page(page, reading_.chunk.codec, deepest_, buffer, reading_.subject));
    if (is_dictionary) return decoder_.take_dictionary(header, parts.values);
    const auto count = static_cast<std::uint64_t>(header.values);
    if (count > entries_left_) return damaged();
    entries_left_ -= count;
    RETURN_IF_ERROR(take_memory(count));
    bool is_full = deepest_.definition == 0 || same_level(parts.definition, header.definition_encoding,
                                                          deepest_.definition, count) == deepest_.definition;
    if (!is_full &&
        !read_levels(parts.definition, header.definition_encoding, deepest_.definition, count, definition_)) {
      return damaged();
    }
    const std::uint64_t there = is_full ? count : count_of(definition_, deepest_.definition);
    if (there == count) is_full = true;
    if (!add_entries(header, parts, is_full)) return damaged();
    if (is_full || there == present_.size()) return add_all(header, parts.values, there);
    return add_some(header, parts.values, there);
  }

  // Of a page that is not full this leaves in present_ what each slot has.
  bool add_entries(const PageHeader& header, const PageParts& parts, bool is_full) {
    if (deepest_.repetition == 0) {
      if (is_full) return true;
      present_.resize(definition_.size());
      for (std::size_t i = 0; i < definition_.size(); ++i)
        present_[i] = definition_[i] == deepest_.definition ? 1 : 0;
      return true;
    }
    if (!read_levels(parts.repetition, header.repetition_encoding, deepest_.repetition,
                     static_cast<std::uint64_t>(header.values), repetition_)) {
      return false;
    }
    return is_full ? lists_.add_full(repetition_) : lists_.add(repetition_, definition_, present_);
  }

  // What a page's entries take at most while it is read must be there; what stays of them is taken.
  Status take_memory(std::uint64_t entries) {
    constexpr std::uint64_t kWhileRead = 16 + sizeof(std::string_view) + sizeof(std::uint32_t);
    const std::uint64_t each = is_bytes_ ? sizeof(std::uint64_t) : byte_width(leaf_.is.type);
    const std::uint64_t stays = each + 1 + leaf_.is.lists * (sizeof(std::uint64_t) + 1);
    if (entries > *reading_.left / (stays + kWhileRead)) return too_large();
    *reading_.left -= entries * stays;
    return {};
  }

  Status read_texts(const PageHeader& header, Bytes data, std::uint64_t count) {
    RETURN_IF_ERROR(decoder_.read_texts(header, data, count, texts_));
    std::uint64_t bytes = 0;
    for (const std::string_view text : texts_) bytes += text.size();
    if (bytes > *reading_.left) return too_large();
    *reading_.left -= bytes;
    return {};
  }

  // `count` numbers as they are to be, into `out`.
  Status read_numbers(const PageHeader& header, Bytes data, std::uint64_t count, std::byte* out) {
    const StoredType& type = leaf_.layout.stored;
    if (is_stored_as_it_is(leaf_))
      return decoder_.read_numbers(header, data, std::span(out, count * type.number_bytes()));
    if (type.is_bytes()) {
      RETURN_IF_ERROR(decoder_.read_texts(header, data, count, texts_));
      return convert_numbers(leaf_, {.numbers = {}, .texts = texts_}, out) ? Status() : damaged();
    }
    stored_.resize(count * type.number_bytes());
    RETURN_IF_ERROR(decoder_.read_numbers(header, data, stored_));
    return convert_numbers(leaf_, {.numbers = stored_, .texts = {}}, out) ? Status() : damaged();
  }

  // Room for `slots` more numbers.
  std::byte* more_numbers(std::uint64_t slots) {
    const std::size_t before = values_.numbers.size();
    values_.numbers.resize(before + slots * byte_width(leaf_.is.type));
    return values_.numbers.data() + before;
  }

  // The page's values are all its slots.
  Status add_all(const PageHeader& header, Bytes data, std::uint64_t count) {
    if (!values_.present.empty()) values_.present.insert(values_.present.end(), count, 1);
    values_.slots += count;
    if (!is_bytes_) return read_numbers(header, data, count, more_numbers(count));
    RETURN_IF_ERROR(read_texts(header, data, count));
    values_.texts.append(texts_);
    return {};
  }

  // `there` of its slots, which present_ tells.
  Status add_some(const PageHeader& header, Bytes data, std::uint64_t there) {
    if (values_.present.empty()) values_.present.assign(values_.slots, 1);
    values_.present.insert(values_.present.end(), present_.begin(), present_.end());
    values_.slots += present_.size();
    if (is_bytes_) {
      RETURN_IF_ERROR(read_texts(header, data, there));
      values_.texts.append(texts_, present_);
      return {};
    }
    const std::size_t width = byte_width(leaf_.is.type);
    numbers_.resize((there + 1) * width);
    RETURN_IF_ERROR(read_numbers(header, data, there, numbers_.data()));
    std::ranges::fill(std::span(numbers_).last(width), std::byte{});
    const auto copy = width == 1 ? spread<1> : width == 2 ? spread<2> : width == 4 ? spread<4> : spread<8>;
    copy(numbers_.data(), present_, more_numbers(present_.size()));
    return {};
  }

  const SchemaLeaf& leaf_;
  const LeafReading& reading_;
  DeepestLevels deepest_;
  bool is_bytes_;
  ValueReader decoder_;
  ParquetValues& values_;
  LeafLists lists_;
  std::uint64_t entries_left_ = 0;  // slots, and lists without any
  // Of the page at hand:
  RawBytes unpacked_;
  Flags definition_;
  Flags repetition_;
  Flags present_;  // for each slot
  std::vector<std::string_view> texts_;
  RawBytes stored_;
  RawBytes numbers_;
  // Of the last dictionary, which texts view:
  RawBytes dictionary_;
};

}  // namespace

Status read_leaf_pages(const LeafReading& reading, const SomePages& some, ParquetValues& values) {
  values.clear();
  return LeafReader(reading, values).run_some(some);
}

Status read_leaf_chunk(const LeafReading& reading, ChunkPages& pages, ParquetValues& values) {
  values.clear();
  return LeafReader(reading, values).run(pages);
}

}  // namespace stoker::formats
