#include "data/look/tables/row_sample.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/encode.h"
#include "base/text.h"
#include "data/components/npy.h"
#include "data/look/foreign_example.h"
#include "data/look/tables/leaf_kind.h"
#include "data/look/tables/row_lists.h"
#include "format/tfrecord.h"

namespace stoker::data {

namespace {

using formats::ParquetLeaf;
using formats::ParquetValues;

constexpr std::size_t kHeld = 4u << 20;
constexpr std::size_t kMostClasses = 100'000;
constexpr std::uint64_t kMostItems = 1000;  // of a list of bytes: each is a kind of file of the dataset

}  // namespace

RowSamples::RowSamples(std::span<const ParquetLeaf> leaves, const TablePlan& plan,
                       const TableOptions& options, File* out, Names names)
    : leaves_(leaves),
      plan_(plan),
      options_(options),
      out_(out),
      subject_(std::move(names.subject)),
      stem_(std::move(names.stem)) {}

// "FILE: row 17, column 'age'"
std::string RowSamples::place(const Row& row, std::size_t leaf) const {
  return format("{}: row {}, column '{}'", subject_, row.number, printable(leaves_[leaf].name));
}

Status RowSamples::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset < written_) return out_->read_at(offset, into);
  std::memcpy(into.data(), held_.data() + (offset - written_), into.size());
  return {};
}

void RowSamples::add_member(ShardSample& sample, const std::string& extension, std::uint64_t at,
                            std::uint64_t bytes) const {
  sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                            .extension = extension,
                            .header_offset = at,
                            .data_offset = at,
                            .bytes = bytes});
}

// False: the row is left out.
Result<bool> RowSamples::missing(const Row& row, std::size_t leaf, std::string_view what) const {
  if (options_.missing == MissingValues::drop) return false;
  return invalid("{}: {} is missing (--missing)", place(row, leaf), what)
      .cure("--missing drop leaves such rows out; so does --where '{} is not null'", leaves_[leaf].name);
}

// An element in place of one that is missing; false: the row is left out.
Result<bool> RowSamples::fill(const Row& row, const Array& array, std::size_t leaf, std::byte* to) const {
  if (options_.missing != MissingValues::fill) {
    if (options_.missing == MissingValues::drop) return false;
    return invalid("{}: has no value (--missing)", place(row, leaf))
        .cure("--missing drop leaves such rows out, --missing 0 or --missing nan puts that in its place");
  }
  if (array.fill.empty()) {
    return invalid("{}: has no value, and {} no {} (--missing)", place(row, leaf),
                   formats::numpy_name(array.type), options_.fill)
        .cure("--missing drop or a number, or a type that has it: --tensor NAME={}:float64",
              leaves_[leaf].name);
  }
  std::memcpy(to, array.fill.data(), array.fill.size());
  return true;
}

Result<std::int64_t> RowSamples::number_of_class(const Row& row, const std::string& text) {
  if (text.empty() || !is_utf8(text))
    return invalid("{}: is no name of a class (--label)", place(row, *plan_.label));
  const auto [found, is_new] = class_numbers_.try_emplace(text, static_cast<std::int64_t>(classes_.size()));
  if (is_new) classes_.push_back(text);
  if (classes_.size() > kMostClasses)
    return invalid("{}: column '{}' has over {} different texts, which are no classes (--label)", subject_,
                   printable(leaves_[*plan_.label].name), grouped(kMostClasses));
  return found->second;
}

Result<bool> RowSamples::take_label(const Row& row, ShardSample& sample) {
  if (!plan_.label) return true;
  const ParquetLeaf& leaf = leaves_[*plan_.label];
  const ParquetValues& values = row.values[*plan_.label];
  if (!values.is_row_present(row.row)) {
    if (options_.label.empty()) return true;  // nobody has asked for it
    return missing(row, *plan_.label, "the label");
  }
  if (leaf.type == ParquetLeaf::Type::bytes) {
    OK_OR_RETURN(number, number_of_class(row, std::string(values.texts[row.row])));
    sample.label = number;
    return true;
  }
  const formats::Number number = number_at(values, leaf, row.row);
  const auto whole = number.whole();
  const bool is_label = whole && *whole >= 0 && *whole <= std::numeric_limits<std::int32_t>::max();
  if (is_label) sample.label = whole;
  if (is_label || options_.label.empty()) return true;
  return invalid("{}: {} is no label: whole numbers from 0 to 2147483647 are (--label)",
                 place(row, *plan_.label), number);
}

Result<bool> RowSamples::take_key(const Row& row, ShardSample& sample) {
  sample.key = format("{}/{:08}", stem_, row.number);
  if (!plan_.key) return true;
  const ParquetValues& values = row.values[*plan_.key];
  if (!values.is_row_present(row.row)) return missing(row, *plan_.key, "the key");
  const ParquetLeaf& leaf = leaves_[*plan_.key];
  sample.key = leaf.type == ParquetLeaf::Type::bytes ? std::string(values.texts[row.row])
                                                     : to_text(number_at(values, leaf, row.row));
  return true;
}

// Columns of bytes, by the rules that records have.
Status RowSamples::take_files(const Row& row, ShardSample& sample) {
  formats::ExampleRecord record;
  record.label = sample.label;
  for (const std::size_t leaf : plan_.files) {
    const ParquetValues& values = row.values[leaf];
    if (!values.is_row_present(row.row)) continue;
    const std::string_view text = values.texts[row.row];
    record.files.push_back({.name = leaves_[leaf].name, .offset = bytes(), .bytes = text.size()});
    held_ += text;
  }
  if (plan_.is_own) {
    for (const formats::RecordFile& file : record.files)
      add_member(sample, file.name, file.offset, file.bytes);
    return {};
  }
  NotTaken ignored;  // the plan has said it
  const formats::ReadAt read = [this](std::uint64_t offset, std::span<std::byte> into) {
    return this->read(offset, into);
  };
  OK_OR_RETURN(made, sample_of_example(record, read, sample.key, ignored));
  if (!plan_.key) sample.key = made.key;
  for (ShardMember& member : made.members)
    add_member(sample, member.extension, member.data_offset, member.bytes);
  return {};
}

// Lists of texts and bytes. Their items have names that no column was asked for.
Status RowSamples::take_items(const Row& row, ShardSample& sample) {
  for (const TablePlan::Items& items : plan_.items) {
    const ParquetValues& values = row.values[items.leaf];
    if (!values.is_row_present(row.row)) continue;
    if (items.is_json) {
      Result<std::optional<std::string>> json = json_of_list(values, row.row);
      if (!json.ok()) return json.status().with_context(place(row, items.leaf));
      add_member(sample, items.extension, bytes(), (*json)->size());
      held_ += **json;
      continue;
    }
    const SlotRange slots = slots_of(values, row.row);
    if (slots.end - slots.begin > kMostItems)
      return invalid("{}: has {} items (at most {} become files of a sample)", place(row, items.leaf),
                     grouped(slots.end - slots.begin), grouped(kMostItems))
          .cure("leave it out by --columns, or such rows by --where");
    for (std::uint64_t slot = slots.begin; slot < slots.end; ++slot) {
      if (!values.is_present(slot)) continue;
      const std::string_view item = values.texts[slot];
      const auto head = std::as_bytes(std::span(item));
      add_member(sample, extension_of_item(items.extension, slot - slots.begin, head), bytes(), item.size());
      held_ += item;
    }
  }
  std::set<std::string_view> names;
  for (const ShardMember& member : sample.members) {
    if (names.insert(member.extension).second) continue;
    return invalid("{}: row {}: would have two files '{}'", subject_, row.number, printable(member.extension))
        .cure("--columns, naming one of them");
  }
  return {};
}

// The number in a slot of a leaf.
Status RowSamples::put_number(const Row& row, const Array& array, Slot slot, std::byte* to) const {
  const formats::Number number = number_at(row.values[slot.leaf], leaves_[slot.leaf], slot.number);
  const std::string_view why = formats::store_number(number, array.type, to);
  if (why.empty()) return {};
  return invalid("{}: {} {} in {} (--tensor)", place(row, slot.leaf), number, why,
                 formats::numpy_name(array.type))
      .cure("another type: --tensor NAME=...:float64");
}

// One number of each leaf.
Result<bool> RowSamples::put_vector(const Row& row, const Array& array) {
  const std::size_t width = size_of(array.type);
  elements_.resize(array.leaves.size() * width);
  shape_ = {static_cast<std::int64_t>(array.leaves.size())};
  for (std::size_t i = 0; i < array.leaves.size(); ++i) {
    const std::size_t leaf = array.leaves[i];
    const ParquetValues& values = row.values[leaf];
    std::byte* const to = elements_.data() + i * width;
    if (!values.is_present(row.row)) {
      OK_OR_RETURN(is_filled, fill(row, array, leaf, to));
      if (!is_filled) return false;
      continue;
    }
    RETURN_IF_ERROR(put_number(row, array, {leaf, row.row}, to));
  }
  return true;
}

// So many slots of the row's one leaf, from `begin` on.
Result<bool> RowSamples::put_items(const Row& row, const Array& array, std::uint64_t begin,
                                   std::uint64_t count) {
  const std::size_t leaf = array.leaves[0];
  const std::size_t width = size_of(array.type);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const to = elements_.data() + i * width;
    if (row.values[leaf].is_present(begin + i)) {
      RETURN_IF_ERROR(put_number(row, array, {leaf, begin + i}, to));
      continue;
    }
    OK_OR_RETURN(is_filled, fill(row, array, leaf, to));
    if (!is_filled) return false;
  }
  return true;
}

// The list of the row's one leaf, cut or padded to its length.
Result<bool> RowSamples::put_lengthened(const Row& row, const Array& array) {
  const std::size_t leaf = array.leaves[0];
  const ParquetValues& values = row.values[leaf];
  const ParquetValues::List& list = values.lists[0];
  if (!list.present.empty() && list.present[row.row] == 0) return missing(row, leaf, "a list");
  const std::uint64_t begin = list.offsets[row.row];
  const std::uint64_t items = list.offsets[row.row + 1] - begin;
  const std::uint64_t length = array.length->items;
  const bool is_cut = items > length;
  const bool is_padded = items < length;
  if ((is_cut && !array.length->cuts) || (is_padded && array.pad.empty())) {
    return invalid("{}: has {} items, and '{}' {} (--tensor)", place(row, leaf), items, array.extension,
                   length)
        .cure("--tensor NAME={}[{},{}], which {}", leaves_[leaf].name, length, is_cut ? "cut" : "pad=0",
              is_cut ? "leaves out what longer lists have behind it" : "puts zeros behind shorter lists");
  }
  const std::size_t width = size_of(array.type);
  shape_ = {static_cast<std::int64_t>(length)};
  elements_.resize(length * width);
  const std::uint64_t kept = std::min(items, length);
  if (array.type == number_type(leaves_[leaf]) && values.present.empty() && kept > 0) {
    std::memcpy(elements_.data(), values.numbers.data() + begin * width, kept * width);
  } else {
    OK_OR_RETURN(is_there, put_items(row, array, begin, kept));
    if (!is_there) return false;
  }
  for (std::uint64_t i = items; i < length; ++i)
    std::memcpy(elements_.data() + i * width, array.pad.data(), width);
  LengthFacts& facts = row_lengths_[array.extension];
  if (is_padded) ++facts.padded;
  if (is_cut) ++facts.cut;
  if (is_cut) facts.items_cut += items - length;
  return true;
}

// A leaf's own number, or its lists as an array: all of one level have to be of one length.
Result<bool> RowSamples::put_list(const Row& row, const Array& array) {
  const std::size_t leaf = array.leaves[0];
  const ParquetValues& values = row.values[leaf];
  std::uint64_t begin = row.row;
  std::uint64_t end = row.row + 1;
  shape_.clear();
  for (const ParquetValues::List& list : values.lists) {
    const std::uint64_t first = begin == end ? 0 : list.offsets[begin + 1] - list.offsets[begin];
    for (std::uint64_t i = begin; i < end; ++i) {
      if (!list.present.empty() && list.present[i] == 0) return missing(row, leaf, "a list");
      const std::uint64_t length = list.offsets[i + 1] - list.offsets[i];
      if (length == first) continue;
      return invalid("{}: is ragged: its lists have {} and {} items, and an array has one length for all",
                     place(row, leaf), first, length)
          .cure(
              "leave it out by --columns, or such rows by --where; or pad the lists where they are written");
    }
    shape_.push_back(static_cast<std::int64_t>(first));
    begin = list.offsets[begin];
    end = list.offsets[end];
  }
  const std::size_t width = size_of(array.type);
  const std::byte* const from = values.numbers.data() + begin * width;
  elements_.assign(from, from + (end - begin) * width);
  if (values.present.empty()) return true;
  for (std::uint64_t slot = begin; slot < end; ++slot) {
    if (values.present[slot] != 0) continue;
    OK_OR_RETURN(is_filled, fill(row, array, leaf, elements_.data() + (slot - begin) * width));
    if (!is_filled) return false;
  }
  return true;
}

Result<bool> RowSamples::take_array(const Row& row, const Array& array, ShardSample& sample) {
  OK_OR_RETURN(is_there, array.is_vector ? put_vector(row, array)
                         : array.length  ? put_lengthened(row, array)
                                         : put_list(row, array));
  if (!is_there) return false;
  const std::uint64_t at = bytes();
  held_ += npy_header(array.type, shape_);
  held_.append(reinterpret_cast<const char*>(elements_.data()), elements_.size());
  add_member(sample, array.extension, at, bytes() - at);
  return true;
}

Result<std::optional<ShardSample>> RowSamples::sample(std::span<const ParquetValues> values,
                                                      std::uint64_t row, std::uint64_t number) {
  using Made = std::optional<ShardSample>;
  const Row at{.values = values, .row = row, .number = number};
  const std::size_t before = held_.size();
  row_lengths_.clear();
  ShardSample sample;
  OK_OR_RETURN(has_label, take_label(at, sample));
  if (!has_label) return Made();
  OK_OR_RETURN(has_key, take_key(at, sample));
  if (!has_key) return Made();
  RETURN_IF_ERROR(take_files(at, sample));
  if (!plan_.items.empty()) RETURN_IF_ERROR(take_items(at, sample));
  for (const Array& array : plan_.arrays) {
    OK_OR_RETURN(is_there, take_array(at, array, sample));
    if (is_there) continue;
    held_.resize(before);
    return Made();
  }
  if (sample.members.empty()) {
    if (options_.missing == MissingValues::drop) return Made();
    return invalid("{}: row {}: has no file: no column of bytes or text has anything", subject_, number)
        .cure("--missing drop leaves such rows out");
  }
  for (const auto& [name, facts] : row_lengths_) lengths_[name] += facts;
  if (held_.size() >= kHeld) RETURN_IF_ERROR(finish());
  return Made(std::move(sample));
}

Status RowSamples::finish() {
  if (held_.empty()) return {};
  if (out_ != nullptr) RETURN_IF_ERROR(out_->write(held_));
  written_ += held_.size();
  held_.clear();
  return {};
}

}  // namespace stoker::data
