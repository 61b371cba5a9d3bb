#include "data/look/tables/table_layout.h"

#include <algorithm>

#include "base/text.h"
#include "data/components/npy.h"

namespace stoker::data {

using formats::ChunkedArray;
using formats::ParquetFile;
using formats::ParquetValues;

namespace {

constexpr std::size_t kMostColumns = 256;  // of a tensor, as the index has them
constexpr std::size_t kMostArrays = 4096;

std::uint64_t row_bytes(const TablePlan::Array& array, const formats::Extents& row) {
  std::uint64_t bytes = size_of(array.type);
  for (const std::uint64_t size : row) bytes *= size;
  return bytes;
}

}  // namespace

Status TableLayout::not_in_place(std::string_view why) const {
  return invalid("{}: {}", subject_, why)
      .cure("stoker data convert SOURCE OUT --format tar: it makes arrays of any table");
}

void TableLayout::find_runs() {
  std::uint64_t first_row = 0;
  bool goes_on = false;
  for (std::size_t group = 0; group < file_.groups(); first_row += file_.rows(group), ++group) {
    const std::uint64_t rows = file_.rows(group);
    if (rows == 0) {
      goes_on = false;
      continue;
    }
    if (!goes_on || rows > file_.rows(runs_.back().groups.first))
      runs_.push_back({.groups = {.first = group}, .first_row = first_row, .begins = {}});
    Run& run = runs_.back();
    ++run.groups.count;
    run.rows += rows;
    goes_on = rows == file_.rows(run.groups.first);
  }
}

// The sizes of lists are those of the first row.
Status TableLayout::lay_out(std::span<const ParquetValues> values) {
  for (const TablePlan::Array& array : plan_.arrays) {
    formats::Extents& row = rows_.emplace_back();
    if (array.is_vector) row = {array.leaves.size()};
    if (array.leaves.size() > kMostColumns) {
      return not_in_place(format("a tensor of {} columns (at most {} are read where they lie)",
                                 array.leaves.size(), kMostColumns));
    }
    if (array.length) row = {array.length->items};
    for (const ParquetValues::List& list : values[array.leaves[0]].lists) {
      if (!array.length) row.push_back(list.offsets.size() < 2 ? 0 : list.offsets[1]);
    }
    const Shape shape(row.begin(), row.end());
    heads_.push_back(npy_header(array.type, shape));
  }
  find_runs();
  for (Run& run : runs_) {
    for (std::size_t i = 0; i < plan_.arrays.size(); ++i) RETURN_IF_ERROR(add(plan_.arrays[i], i, run));
    if (arrays_.size() > kMostArrays) {
      return not_in_place(format("its row groups have rows in {} different numbers, which are too many",
                                 grouped(runs_.size())));
    }
  }
  return {};
}

// Of a vector its columns come first, then what shows them side by side.
Status TableLayout::add(const TablePlan::Array& array, std::size_t number, Run& run) {
  ParquetFile::Elements elements{.type = array.type, .row = rows_[number], .fill = array.fill};
  elements.fill.resize(size_of(array.type));
  const bool is_side_by_side = array.is_vector && array.leaves.size() > 1;
  if (array.is_vector) elements.row.clear();
  const auto first = static_cast<std::uint32_t>(arrays_.size());
  for (const std::size_t leaf : array.leaves) {
    OK_OR_RETURN(column, file_.column(leaf, run.groups, elements));
    if (is_side_by_side) end_ += run.rows * size_of(array.type);
    if (!is_side_by_side) column.head = heads_[number];
    arrays_.push_back(std::move(column));
  }
  if (is_side_by_side) {
    ChunkedArray& vector = arrays_.emplace_back();
    vector.name = format("'{}'", array.extension);
    vector.head = heads_[number];
    vector.windows = formats::Windows{.size = {1}, .step = {1}, .counts = {run.rows}, .parts = {}};
    for (std::uint32_t i = 0; i < array.leaves.size(); ++i) vector.windows->parts.push_back({first + i, {0}});
  }
  run.begins.push_back(end_);
  end_ += run.rows * (heads_[number].size() + row_bytes(array, rows_[number]));
  return {};
}

// A chunk is read where every row of it has the same sizes.
Status TableLayout::check_even(std::span<const ParquetValues> values) const {
  for (std::size_t i = 0; i < plan_.arrays.size(); ++i) {
    const std::size_t leaf = plan_.arrays[i].leaves[0];
    const bool has_values = std::ranges::find(rows_[i], 0) == rows_[i].end();
    if (has_values && values[leaf].has_lists_of(rows_[i])) continue;
    const std::string column = format("column '{}'", printable(file_.leaves()[leaf].name));
    if (plan_.arrays[i].length)
      return not_in_place(format("{}: not all its lists have {} items: only a copy pads and cuts them",
                                 column, plan_.arrays[i].length->items));
    return not_in_place(
        format("{}: its lists are not all of one length, and only such are arrays where they lie", column));
  }
  return {};
}

Status TableLayout::begin_group(std::span<const ParquetValues> values) {
  if (runs_.empty()) RETURN_IF_ERROR(lay_out(values));
  return check_even(values);
}

void TableLayout::place(ShardSample& sample, std::uint64_t row) const {
  const auto behind = std::ranges::upper_bound(runs_, row, {}, &Run::first_row);
  const Run& run = *std::prev(behind);
  for (std::size_t i = 0; i < sample.members.size(); ++i) {
    ShardMember& member = sample.members[i];
    member.data_offset = run.begins[i] + (row - run.first_row) * member.bytes;
    member.header_offset = member.data_offset;
  }
  std::ranges::sort(sample.members, {}, &ShardMember::extension);  // as in a copy
}

Result<formats::ChunkMap> TableLayout::finish(std::uint64_t shard_bytes) {
  return formats::ChunkMap::create(std::move(arrays_), shard_bytes, subject_);
}

}  // namespace stoker::data
