#include "data/look/tables/paths/table_file.h"

#include <algorithm>

#include "base/text.h"
#include "format/chunked/coders.h"
#include "format/parquet/columns/number.h"

namespace stoker::data {

using formats::ParquetFile;

TableFile::TableFile(const ParquetFile& file, const TablePath& path) : file_(file), path_(path) {
  for (std::size_t i = 0; i < file.leaves().size(); ++i) {
    const formats::ParquetLeaf& leaf = file.leaves()[i];
    const bool is_covered = std::ranges::any_of(
        path.columns, [&](const PathColumn& column) { return column.leaf.name == leaf.name; });
    if (is_covered) {
      covered_.push_back(leaf.name + " of the file: its path's is taken");
      continue;
    }
    leaves_.push_back(leaf);
    own_.push_back(i);
  }
  for (const PathColumn& column : path.columns) leaves_.push_back(column.leaf);
}

Status TableFile::read_leaf(std::size_t group, std::size_t leaf, formats::ParquetValues& values) const {
  if (!is_of_path(leaf)) return file_.read_leaf(group, own_[leaf], values);
  put_values(of_path(leaf), rows(group), values);
  return {};
}

std::optional<formats::ParquetRange> TableFile::range_of(std::size_t group, std::size_t leaf) const {
  if (!is_of_path(leaf)) return file_.range_of(group, own_[leaf]);
  return data::range_of(of_path(leaf), rows(group));
}

Result<std::uint64_t> TableFile::read_rows(std::size_t group, std::size_t leaf,
                                           std::span<const formats::RowRange> rows,
                                           formats::ParquetValues& values) const {
  if (!is_of_path(leaf)) return file_.read_rows(group, own_[leaf], rows, values);
  RETURN_IF_ERROR(read_leaf(group, leaf, values));
  return std::uint64_t{0};
}

Result<std::vector<ParquetFile::PageRows>> TableFile::pages(std::size_t group, std::size_t leaf) const {
  if (!is_of_path(leaf)) return file_.pages(group, own_[leaf]);
  return std::vector<ParquetFile::PageRows>{{.rows = {0, rows(group)}, .range = range_of(group, leaf)}};
}

Result<formats::ChunkedArray> TableFile::column(std::size_t leaf, const ParquetFile::Groups& groups,
                                                const ParquetFile::Elements& elements) const {
  if (!is_of_path(leaf)) return file_.column(own_[leaf], groups, elements);
  constexpr std::uint64_t kChunkRows = 1u << 20;
  const PathColumn& of = of_path(leaf);
  formats::ChunkedArray array;
  array.name = format("'{}' of the path", printable(of.leaf.name));
  array.element_bytes = static_cast<std::uint32_t>(size_of(elements.type));
  array.fill = elements.fill;
  if (of.text) {
    const std::string_view why =
        formats::store_number(formats::Number(of.number), elements.type, array.fill.data());
    if (!why.empty())
      return invalid("column '{}': {} {} in {}", printable(of.leaf.name), of.number, why,
                     formats::numpy_name(elements.type));
  }
  std::uint64_t rows = 0;
  for (std::size_t group = groups.first; group < groups.first + groups.count; ++group)
    rows += this->rows(group);
  array.shape = {rows};
  array.chunks = {kChunkRows};
  array.coder = formats::plain_coder(1);
  array.places.resize((rows + kChunkRows - 1) / kChunkRows);  // missing: each reads as the fill value
  return array;
}

}  // namespace stoker::data
