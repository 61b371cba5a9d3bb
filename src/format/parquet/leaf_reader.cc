#include "format/parquet/leaf_reader.h"

#include <algorithm>
#include <cstring>

#include "format/parquet/convert.h"
#include "format/parquet/pages/page.h"
#include "format/parquet/pages/values.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;
using Flags = std::vector<std::uint8_t>;

// Adds `flag` to flags of which there are `before`, and none as long as all are set.
void add_flag(bool flag, std::uint64_t before, Flags& flags) {
  if (flag && flags.empty()) return;
  if (flags.empty()) flags.assign(before, 1);
  flags.push_back(flag ? 1 : 0);
}

// Lists out of levels: a repetition level says which list an entry is another item of, a definition level how
// far down there is something.
class Lists {
 public:
  Lists(const LeafLayout& layout, ParquetValues& values) : layout_(layout), values_(values) {
    values_.lists.resize(layout.lists.size());
    counts_.resize(layout.lists.size());
  }

  // False for levels that do not hold. Adds to `present`, if it has one, the entry's slot.
  bool add(unsigned repetition, unsigned definition, Flags& present) {
    std::size_t level = repetition;  // the list that the entry begins, 0 being that of the row
    if (repetition == 0) {
      ++values_.rows;
    } else {
      if (repetition > counts_.size() || counts_[repetition - 1] == 0) return false;
      if (definition < layout_.lists[repetition - 1]) return false;
      ++counts_[repetition - 1];
    }
    for (; level < counts_.size(); ++level) {
      const unsigned with_item = layout_.lists[level];
      ParquetValues::List& list = values_.lists[level];
      add_flag(definition + 1 >= with_item, list.offsets.size(), list.present);
      list.offsets.push_back(counts_[level]);
      if (definition < with_item) return true;
      ++counts_[level];
    }
    present.push_back(definition == layout_.definition ? 1 : 0);
    return true;
  }

  void finish() {
    for (std::size_t level = 0; level < counts_.size(); ++level)
      values_.lists[level].offsets.push_back(counts_[level]);
  }

 private:
  const LeafLayout& layout_;
  ParquetValues& values_;
  std::vector<std::uint64_t> counts_;  // items of each level so far
};

class LeafReader {
 public:
  LeafReader(const ParquetChunk& chunk, const SchemaLeaf& leaf, const LeafReading& reading)
      : chunk_(chunk),
        leaf_(leaf),
        reading_(reading),
        decoder_(leaf.layout.stored, reading.subject, *reading.left),
        lists_(leaf.layout, values_) {}

  Result<ParquetValues> run(Bytes bytes, std::uint64_t rows) {
    if (leaf_.is.lists > 0 && chunk_.values < 0) return damaged();
    entries_left_ = leaf_.is.lists > 0 ? static_cast<std::uint64_t>(chunk_.values) : rows;
    reserve(bytes.size());
    while (!bytes.empty() && entries_left_ > 0) {
      OK_OR_RETURN(page, take_page(bytes, reading_.subject));
      RETURN_IF_ERROR(take(page));
    }
    lists_.finish();
    if (leaf_.is.lists == 0) values_.rows = values_.slots;
    if (values_.rows == rows && entries_left_ == 0) return std::move(values_);
    return corrupt("{}: has {} values, the row group {} rows", reading_.subject, values_.rows, rows);
  }

 private:
  Status damaged() const { return corrupt("{}: a page is damaged", reading_.subject); }

  // Room for all numbers at once, as far as so many stored bytes make it credible.
  void reserve(std::uint64_t stored) {
    constexpr std::uint64_t kCredible = 64;
    const std::uint64_t width = byte_width(leaf_.is.type);
    values_.numbers.reserve(std::min({entries_left_, *reading_.left / 8, stored * kCredible}) * width);
  }

  Status take(const Page& page) {
    if (page.header.type != kDictionaryPage && !page.header.is_data()) return {};
    const DeepestLevels deepest{.repetition = leaf_.is.lists, .definition = leaf_.layout.definition};
    const bool is_dictionary = page.header.type == kDictionaryPage;
    OK_OR_RETURN(parts, open_page(page, chunk_.codec, deepest, is_dictionary ? dictionary_ : unpacked_,
                                  reading_.subject));
    if (is_dictionary) return decoder_.take_dictionary(page.header, parts.values);
    const auto count = static_cast<std::uint64_t>(page.header.values);
    if (count > entries_left_) return damaged();
    entries_left_ -= count;
    RETURN_IF_ERROR(take_memory(count));
    const bool has_levels =
        deepest.definition == 0 || read_levels(parts.definition, page.header.definition_encoding,
                                               deepest.definition, count, definition_);
    if (!has_levels) return damaged();
    const bool has_lists =
        deepest.repetition == 0 || read_levels(parts.repetition, page.header.repetition_encoding,
                                               deepest.repetition, count, repetition_);
    if (!has_lists) return damaged();
    const std::uint64_t there =
        deepest.definition == 0
            ? count
            : static_cast<std::uint64_t>(std::ranges::count(definition_, deepest.definition));
    stored_.clear();
    RETURN_IF_ERROR(decoder_.read(page.header, parts.values, there, stored_));
    if (there == count && leaf_.is.lists == 0) return add_all(count);
    present_.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (leaf_.is.lists == 0) present_.push_back(definition_[i] == deepest.definition ? 1 : 0);
      if (leaf_.is.lists > 0 && !lists_.add(repetition_[i], definition_[i], present_)) return damaged();
    }
    return there == present_.size() ? add_all(there) : add_some();
  }

  // What a page's entries take at most while it is read must be there; what stays of them is taken.
  Status take_memory(std::uint64_t entries) {
    constexpr std::uint64_t kWhileRead = 16 + sizeof(std::string_view) + sizeof(std::uint32_t);
    constexpr std::uint64_t kText = sizeof(std::string);
    const bool is_bytes = leaf_.is.type == ParquetLeaf::Type::bytes;
    const std::uint64_t stays =
        (is_bytes ? kText : byte_width(leaf_.is.type)) + 1 + leaf_.is.lists * (sizeof(std::uint64_t) + 1);
    if (entries > *reading_.left / (stays + kWhileRead)) return too_large();
    *reading_.left -= entries * stays;
    return {};
  }
  Status too_large() const { return invalid("{}: is too large", reading_.subject); }

  Status add_text(std::string_view text) {
    if (text.size() > *reading_.left) return too_large();
    *reading_.left -= text.size();
    values_.texts.emplace_back(text);
    return {};
  }

  // The page's values are all its slots.
  Status add_all(std::uint64_t count) {
    if (!values_.present.empty()) values_.present.insert(values_.present.end(), count, 1);
    values_.slots += count;
    if (leaf_.is.type == ParquetLeaf::Type::bytes) {
      for (const std::string_view text : stored_.strings) RETURN_IF_ERROR(add_text(text));
      return {};
    }
    if (!convert_numbers(leaf_, stored_, numbers_)) return damaged();
    values_.numbers.insert(values_.numbers.end(), numbers_.begin(), numbers_.end());
    return {};
  }

  // Those of its slots that are there.
  Status add_some() {
    for (const std::uint8_t is_there : present_) add_flag(is_there != 0, values_.slots++, values_.present);
    if (leaf_.is.type == ParquetLeaf::Type::bytes) {
      auto next = stored_.strings.begin();
      for (const std::uint8_t is_there : present_)
        RETURN_IF_ERROR(add_text(is_there != 0 ? *next++ : std::string_view()));
      return {};
    }
    if (!convert_numbers(leaf_, stored_, numbers_)) return damaged();
    const std::size_t width = byte_width(leaf_.is.type);
    const std::size_t before = values_.numbers.size();
    values_.numbers.resize(before + present_.size() * width);
    const std::byte* next = numbers_.data();
    std::byte* out = values_.numbers.data() + before;
    for (const std::uint8_t is_there : present_) {
      if (is_there != 0) {
        std::memcpy(out, next, width);
        next += width;
      }
      out += width;
    }
    return {};
  }

  const ParquetChunk& chunk_;
  const SchemaLeaf& leaf_;
  const LeafReading& reading_;
  ValueReader decoder_;
  ParquetValues values_;
  Lists lists_;
  std::uint64_t entries_left_ = 0;  // slots, and lists without any
  // Of the page at hand:
  std::vector<std::byte> unpacked_;
  Flags definition_;
  Flags repetition_;
  Flags present_;  // for each slot
  PageValues stored_;
  std::vector<std::byte> numbers_;
  // Of the last dictionary, which values view:
  std::vector<std::byte> dictionary_;
};

}  // namespace

Result<ParquetValues> read_leaf_chunk(const ParquetChunk& chunk, const SchemaLeaf& leaf, std::uint64_t rows,
                                      Bytes bytes, const LeafReading& reading) {
  return LeafReader(chunk, leaf, reading).run(bytes, rows);
}

}  // namespace stoker::formats
