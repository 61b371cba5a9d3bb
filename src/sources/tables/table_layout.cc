#include "sources/tables/table_layout.h"

#include <algorithm>

#include "codec/npy.h"
#include "stoker/text.h"

namespace stoker::sources {

using codec::ChunkedArray;
using parquet::ParquetFile;
using parquet::ParquetValues;

namespace {

constexpr std::size_t kMaxColumns = 256;  // of a tensor, as the index has them
constexpr std::size_t kMaxArrays = 4096;

std::uint64_t row_bytes(const TablePlan::Array& array, const codec::Extents& row) {
  std::uint64_t bytes = size_of(array.type);
  for (const std::uint64_t size : row) bytes *= size;
  return bytes;
}

}  // namespace

Status TableLayout::not_in_place(std::string_view why) const {
  return invalid("{}: {}", subject_, why).cure("stoker data convert SOURCE OUT --format tar");
}

void TableLayout::find_runs() {
  std::uint64_t first_row = 0;
  bool continues = false;
  for (std::size_t group = 0; group < file_.groups(); first_row += file_.rows(group), ++group) {
    const std::uint64_t rows = file_.rows(group);
    if (rows == 0) {
      continues = false;
      continue;
    }
    if (!continues || rows > file_.rows(runs_.back().groups.first))
      runs_.push_back({.groups = {.first = group}, .first_row = first_row, .begins = {}});
    Run& run = runs_.back();
    ++run.groups.count;
    run.rows += rows;
    continues = rows == file_.rows(run.groups.first);
  }
}

// The first row determines the list sizes.
Status TableLayout::place_arrays(std::span<const ParquetValues> values) {
  for (const TablePlan::Array& array : plan_.arrays) {
    codec::Extents& row = rows_.emplace_back();
    if (array.is_vector) row = {array.leaves.size()};
    if (array.leaves.size() > kMaxColumns) {
      return not_in_place(
          format("a tensor of {} columns (at most {} are read in place)", array.leaves.size(), kMaxColumns));
    }
    if (array.length) row = {array.length->items};
    for (const ParquetValues::List& list : values[array.leaves[0]].lists) {
      if (!array.length) row.push_back(list.offsets.size() < 2 ? 0 : list.offsets[1]);
    }
    const Shape shape(row.begin(), row.end());
    heads_.push_back(codec::npy_header(array.type, shape));
  }
  find_runs();
  for (Run& run : runs_) {
    for (std::size_t i = 0; i < plan_.arrays.size(); ++i)
      STOKER_RETURN_IF_ERROR(add(plan_.arrays[i], i, run));
    if (arrays_.size() > kMaxArrays) {
      return not_in_place(
          format("its row groups have {} different row counts, which are too many", grouped(runs_.size())));
    }
  }
  return {};
}

// The columns of a vector come first, then the array that combines them.
Status TableLayout::add(const TablePlan::Array& array, std::size_t number, Run& run) {
  ParquetFile::Elements elements{.type = array.type, .row = rows_[number], .fill = array.fill};
  elements.fill.resize(size_of(array.type));
  const bool is_side_by_side = array.is_vector && array.leaves.size() > 1;
  if (array.is_vector) elements.row.clear();
  const auto first = static_cast<std::uint32_t>(arrays_.size());
  for (const std::size_t leaf : array.leaves) {
    STOKER_ASSIGN_OR_RETURN(column, file_.column(leaf, run.groups, elements));
    if (is_side_by_side) end_ += run.rows * size_of(array.type);
    if (!is_side_by_side) column.head = heads_[number];
    arrays_.push_back(std::move(column));
  }
  if (is_side_by_side) {
    ChunkedArray& vector = arrays_.emplace_back();
    vector.name = format("'{}'", array.extension);
    vector.head = heads_[number];
    vector.windows = codec::Windows{.size = {1}, .step = {1}, .counts = {run.rows}, .parts = {}};
    for (std::uint32_t i = 0; i < array.leaves.size(); ++i) vector.windows->parts.push_back({first + i, {0}});
  }
  run.begins.push_back(end_);
  end_ += run.rows * (heads_[number].size() + row_bytes(array, rows_[number]));
  return {};
}

// All rows of a chunk must have the same sizes.
Status TableLayout::check_even(std::span<const ParquetValues> values) const {
  for (std::size_t i = 0; i < plan_.arrays.size(); ++i) {
    const std::size_t leaf = plan_.arrays[i].leaves[0];
    const bool has_values = std::ranges::find(rows_[i], 0) == rows_[i].end();
    if (has_values && values[leaf].has_list_sizes(rows_[i])) continue;
    const std::string column = format("column '{}'", printable(file_.leaves()[leaf].name));
    if (plan_.arrays[i].length)
      return not_in_place(format("{}: not all its lists have {} items, and only a copy pads and cuts them",
                                 column, plan_.arrays[i].length->items));
    return not_in_place(
        format("{}: its lists have different lengths, so they cannot be read in place", column));
  }
  return {};
}

Status TableLayout::begin_group(std::span<const ParquetValues> values) {
  if (runs_.empty()) STOKER_RETURN_IF_ERROR(place_arrays(values));
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
  std::ranges::sort(sample.members, {}, &ShardMember::extension);  // the order of a copy
}

Result<codec::ChunkMap> TableLayout::finish(std::uint64_t shard_bytes) {
  return codec::ChunkMap::create(std::move(arrays_), shard_bytes, subject_);
}

}  // namespace stoker::sources
