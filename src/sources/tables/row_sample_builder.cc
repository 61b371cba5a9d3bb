#include "sources/tables/row_sample_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "archive/tfrecord.h"
#include "base/encode.h"
#include "codec/npy.h"
#include "sources/foreign_example.h"
#include "sources/tables/filter/leaf_kind.h"
#include "sources/tables/filter/predicate.h"
#include "sources/tables/list_files.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using parquet::ParquetLeaf;
using parquet::ParquetValues;

constexpr std::size_t kMaxPending = 4u << 20;
constexpr std::size_t kMaxClasses = 100'000;
constexpr std::uint64_t kMaxItems = 1000;  // of a list of bytes: each is a component of the dataset

}  // namespace

RowSampleBuilder::RowSampleBuilder(std::span<const ParquetLeaf> leaves, const TablePlan& plan,
                                   const TableOptions& options, File* out, Names names)
    : leaves_(leaves),
      plan_(plan),
      options_(options),
      out_(out),
      subject_(std::move(names.subject)),
      stem_(std::move(names.stem)) {}

// "FILE: row 17, column 'age'"
std::string RowSampleBuilder::place(const Row& row, std::size_t leaf) const {
  return format("{}: row {}, column '{}'", subject_, row.number, printable(leaves_[leaf].name));
}

Status RowSampleBuilder::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset < written_) return out_->read_at(offset, into);
  std::memcpy(into.data(), pending_.data() + (offset - written_), into.size());
  return {};
}

void RowSampleBuilder::add_member(ShardSample& sample, const std::string& extension, std::uint64_t at,
                                  std::uint64_t bytes) const {
  sample.members.push_back({.name = format("{}.{}", sample.key, extension),
                            .extension = extension,
                            .header_offset = at,
                            .data_offset = at,
                            .bytes = bytes});
}

// False: leave out the row.
Result<bool> RowSampleBuilder::missing(const Row& row, std::size_t leaf, std::string_view what) const {
  if (options_.missing == MissingValues::drop) return false;
  return invalid("{}: {} is missing (--missing)", place(row, leaf), what)
      .cure("--missing drop leaves such rows out; so does {}", where_present(leaves_[leaf].name));
}

// Fills in a missing element; false: leave out the row.
Result<bool> RowSampleBuilder::fill(const Row& row, const Array& array, std::size_t leaf,
                                    std::byte* to) const {
  if (options_.missing != MissingValues::fill) {
    if (options_.missing == MissingValues::drop) return false;
    return invalid("{}: has no value (--missing)", place(row, leaf))
        .cure("--missing drop leaves such rows out, --missing 0 or --missing nan fills them");
  }
  if (array.fill.empty()) {
    return invalid("{}: has no value, and {} no {} (--missing)", place(row, leaf),
                   parquet::numpy_name(array.type), options_.fill)
        .cure("--missing drop or a number, or a type that supports it: --tensor NAME={}:float64",
              leaves_[leaf].name);
  }
  std::memcpy(to, array.fill.data(), array.fill.size());
  return true;
}

Result<std::int64_t> RowSampleBuilder::class_number(const Row& row, const std::string& text) {
  if (text.empty() || !is_utf8(text))
    return invalid("{}: is not a class name (--label)", place(row, *plan_.label));
  const auto [found, is_new] = class_numbers_.try_emplace(text, static_cast<std::int64_t>(classes_.size()));
  if (is_new) classes_.push_back(text);
  if (classes_.size() > kMaxClasses)
    return invalid("{}: column '{}' has over {} different texts, too many for classes (--label)", subject_,
                   printable(leaves_[*plan_.label].name), grouped(kMaxClasses));
  return found->second;
}

Result<bool> RowSampleBuilder::read_label(const Row& row, ShardSample& sample) {
  if (!plan_.label) return true;
  const ParquetLeaf& leaf = leaves_[*plan_.label];
  const ParquetValues& values = row.values[*plan_.label];
  if (!values.is_row_present(row.row)) {
    if (options_.label.empty()) return true;  // not requested
    return missing(row, *plan_.label, "the label");
  }
  if (leaf.type == ParquetLeaf::Type::bytes) {
    STOKER_ASSIGN_OR_RETURN(number, class_number(row, std::string(values.texts[row.row])));
    sample.label = number;
    return true;
  }
  const parquet::Number number = number_at(values, leaf, row.row);
  const auto whole = number.whole();
  const bool is_label = whole && *whole >= 0 && *whole <= std::numeric_limits<std::int32_t>::max();
  if (is_label) sample.label = whole;
  if (is_label || options_.label.empty()) return true;
  return invalid("{}: {} is not a label: labels are integers from 0 to 2147483647 (--label)",
                 place(row, *plan_.label), number);
}

Result<bool> RowSampleBuilder::read_key(const Row& row, ShardSample& sample) {
  sample.key = format("{}/{:08}", stem_, row.number);
  if (!plan_.key) return true;
  const ParquetValues& values = row.values[*plan_.key];
  if (!values.is_row_present(row.row)) return missing(row, *plan_.key, "the key");
  const ParquetLeaf& leaf = leaves_[*plan_.key];
  sample.key = leaf.type == ParquetLeaf::Type::bytes ? std::string(values.texts[row.row])
                                                     : to_text(number_at(values, leaf, row.row));
  return true;
}

// Columns of bytes, by the rules for records.
Status RowSampleBuilder::add_files(const Row& row, ShardSample& sample) {
  archive::ExampleRecord record;
  record.label = sample.label;
  for (const std::size_t leaf : plan_.files) {
    const ParquetValues& values = row.values[leaf];
    if (!values.is_row_present(row.row)) continue;
    const std::string_view text = values.texts[row.row];
    record.files.push_back({.name = leaves_[leaf].name, .offset = bytes(), .bytes = text.size()});
    pending_ += text;
  }
  if (plan_.is_own) {
    for (const archive::RecordFile& file : record.files)
      add_member(sample, file.name, file.offset, file.bytes);
    return {};
  }
  SkippedFields ignored;  // already reported by the plan
  const archive::ReadAt read = [this](std::uint64_t offset, std::span<std::byte> into) {
    return this->read(offset, into);
  };
  STOKER_ASSIGN_OR_RETURN(made, sample_from_example(record, read, sample.key, ignored));
  if (!plan_.key) sample.key = made.key;
  for (ShardMember& member : made.members)
    add_member(sample, member.extension, member.data_offset, member.bytes);
  return {};
}

// Lists of texts and bytes. The names of their items may collide with columns.
Status RowSampleBuilder::add_items(const Row& row, ShardSample& sample) {
  for (const TablePlan::Items& items : plan_.items) {
    const ParquetValues& values = row.values[items.leaf];
    if (!values.is_row_present(row.row)) continue;
    if (items.is_json) {
      Result<std::optional<std::string>> json = json_of_list(values, row.row);
      if (!json.ok()) return json.status().with_context(place(row, items.leaf));
      add_member(sample, items.extension, bytes(), (*json)->size());
      pending_ += **json;
      continue;
    }
    const SlotRange slots = slots_of(values, row.row);
    if (slots.end - slots.begin > kMaxItems)
      return invalid("{}: has {} items (at most {} become files of a sample)", place(row, items.leaf),
                     grouped(slots.end - slots.begin), grouped(kMaxItems))
          .cure("exclude it with --columns, or such rows with --where");
    for (std::uint64_t slot = slots.begin; slot < slots.end; ++slot) {
      if (!values.is_present(slot)) continue;
      const std::string_view item = values.texts[slot];
      const auto head = std::as_bytes(std::span(item));
      add_member(sample, extension_of_item(items.extension, slot - slots.begin, head), bytes(), item.size());
      pending_ += item;
    }
  }
  std::set<std::string_view> names;
  for (const ShardMember& member : sample.members) {
    if (names.insert(member.extension).second) continue;
    return invalid("{}: row {}: would have two files '{}'", subject_, row.number, printable(member.extension))
        .cure("--columns with only one of them");
  }
  return {};
}

// The number in a slot of a leaf.
Status RowSampleBuilder::put_number(const Row& row, const Array& array, Slot slot, std::byte* to) const {
  const parquet::Number number = number_at(row.values[slot.leaf], leaves_[slot.leaf], slot.number);
  const std::string_view why = parquet::store_number(number, array.type, to);
  if (why.empty()) return {};
  return invalid("{}: {} {} in {} (--tensor)", place(row, slot.leaf), number, why,
                 parquet::numpy_name(array.type))
      .cure("another type: --tensor NAME=...:float64");
}

// One number per leaf.
Result<bool> RowSampleBuilder::put_vector(const Row& row, const Array& array) {
  const std::size_t width = size_of(array.type);
  elements_.resize(array.leaves.size() * width);
  shape_ = {static_cast<std::int64_t>(array.leaves.size())};
  for (std::size_t i = 0; i < array.leaves.size(); ++i) {
    const std::size_t leaf = array.leaves[i];
    const ParquetValues& values = row.values[leaf];
    std::byte* const to = elements_.data() + i * width;
    if (!values.is_present(row.row)) {
      STOKER_ASSIGN_OR_RETURN(is_filled, fill(row, array, leaf, to));
      if (!is_filled) return false;
      continue;
    }
    STOKER_RETURN_IF_ERROR(put_number(row, array, {leaf, row.row}, to));
  }
  return true;
}

// `count` slots of the row's only leaf, from `begin` on.
Result<bool> RowSampleBuilder::put_items(const Row& row, const Array& array, std::uint64_t begin,
                                         std::uint64_t count) {
  const std::size_t leaf = array.leaves[0];
  const std::size_t width = size_of(array.type);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const to = elements_.data() + i * width;
    if (row.values[leaf].is_present(begin + i)) {
      STOKER_RETURN_IF_ERROR(put_number(row, array, {leaf, begin + i}, to));
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(is_filled, fill(row, array, leaf, to));
    if (!is_filled) return false;
  }
  return true;
}

// The list of the row's only leaf, cut or padded.
Result<bool> RowSampleBuilder::put_padded_list(const Row& row, const Array& array) {
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
              is_cut ? "truncates longer lists" : "pads shorter lists with zeros");
  }
  const std::size_t width = size_of(array.type);
  shape_ = {static_cast<std::int64_t>(length)};
  elements_.resize(length * width);
  const std::uint64_t kept = std::min(items, length);
  if (array.type == number_type(leaves_[leaf]) && values.present.empty() && kept > 0) {
    std::memcpy(elements_.data(), values.numbers.data() + begin * width, kept * width);
  } else {
    STOKER_ASSIGN_OR_RETURN(is_there, put_items(row, array, begin, kept));
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

// A leaf's number, or its lists as an array: all lists of one level must have equal lengths.
Result<bool> RowSampleBuilder::put_list(const Row& row, const Array& array) {
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
      return invalid("{}: is ragged: its lists have {} and {} items, but an array has one length",
                     place(row, leaf), first, length)
          .cure(
              "exclude it with --columns, or such rows with --where; or pad the lists where they are "
              "written");
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
    STOKER_ASSIGN_OR_RETURN(is_filled, fill(row, array, leaf, elements_.data() + (slot - begin) * width));
    if (!is_filled) return false;
  }
  return true;
}

Result<bool> RowSampleBuilder::add_array(const Row& row, const Array& array, ShardSample& sample) {
  STOKER_ASSIGN_OR_RETURN(is_there, array.is_vector ? put_vector(row, array)
                                    : array.length  ? put_padded_list(row, array)
                                                    : put_list(row, array));
  if (!is_there) return false;
  const std::uint64_t at = bytes();
  pending_ += codec::npy_header(array.type, shape_);
  pending_.append(reinterpret_cast<const char*>(elements_.data()), elements_.size());
  add_member(sample, array.extension, at, bytes() - at);
  return true;
}

Result<std::optional<ShardSample>> RowSampleBuilder::sample(std::span<const ParquetValues> values,
                                                            std::uint64_t row, std::uint64_t number) {
  using Made = std::optional<ShardSample>;
  const Row at{.values = values, .row = row, .number = number};
  const std::size_t before = pending_.size();
  row_lengths_.clear();
  ShardSample sample;
  STOKER_ASSIGN_OR_RETURN(has_label, read_label(at, sample));
  if (!has_label) return Made();
  STOKER_ASSIGN_OR_RETURN(has_key, read_key(at, sample));
  if (!has_key) return Made();
  STOKER_RETURN_IF_ERROR(add_files(at, sample));
  if (!plan_.items.empty()) STOKER_RETURN_IF_ERROR(add_items(at, sample));
  for (const Array& array : plan_.arrays) {
    STOKER_ASSIGN_OR_RETURN(is_there, add_array(at, array, sample));
    if (is_there) continue;
    pending_.resize(before);
    return Made();
  }
  if (sample.members.empty()) {
    if (options_.missing == MissingValues::drop) return Made();
    return invalid("{}: row {}: has no file: all its columns of bytes or text are empty", subject_, number)
        .cure("--missing drop leaves such rows out");
  }
  for (const auto& [name, facts] : row_lengths_) lengths_[name] += facts;
  if (pending_.size() >= kMaxPending) STOKER_RETURN_IF_ERROR(finish());
  return Made(std::move(sample));
}

Status RowSampleBuilder::finish() {
  if (pending_.empty()) return {};
  if (out_ != nullptr) STOKER_RETURN_IF_ERROR(out_->write(pending_));
  written_ += pending_.size();
  pending_.clear();
  return {};
}

}  // namespace stoker::sources
