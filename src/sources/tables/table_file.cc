#include "sources/tables/table_file.h"

#include <algorithm>

#include "codec/chunks/coders.h"
#include "parquet/columns/number.h"
#include "stoker/text.h"

namespace stoker::sources {

using parquet::ParquetFile;

TableFile::TableFile(const ParquetFile& file, const TablePath& path) : file_(file), path_(path) {
  for (std::size_t i = 0; i < file.leaves().size(); ++i) {
    const parquet::ParquetLeaf& leaf = file.leaves()[i];
    const bool is_shadowed = std::ranges::any_of(
        path.columns, [&](const PartitionColumn& column) { return column.leaf.name == leaf.name; });
    if (is_shadowed) {
      shadowed_.push_back(leaf.name + " of the file (the path's value is used)");
      continue;
    }
    leaves_.push_back(leaf);
    own_.push_back(i);
  }
  for (const PartitionColumn& column : path.columns) leaves_.push_back(column.leaf);
}

Status TableFile::read_leaf(std::size_t group, std::size_t leaf, parquet::ParquetValues& values) const {
  if (!is_partition(leaf)) return file_.read_leaf(group, own_[leaf], values);
  put_values(partition(leaf), rows(group), values);
  return {};
}

std::optional<parquet::ParquetRange> TableFile::range_of(std::size_t group, std::size_t leaf) const {
  if (!is_partition(leaf)) return file_.range_of(group, own_[leaf]);
  return sources::range_of(partition(leaf), rows(group));
}

Result<std::uint64_t> TableFile::read_rows(std::size_t group, std::size_t leaf,
                                           std::span<const parquet::RowRange> rows,
                                           parquet::ParquetValues& values) const {
  if (!is_partition(leaf)) return file_.read_rows(group, own_[leaf], rows, values);
  STOKER_RETURN_IF_ERROR(read_leaf(group, leaf, values));
  return std::uint64_t{0};
}

Result<std::vector<ParquetFile::PageRows>> TableFile::pages(std::size_t group, std::size_t leaf) const {
  if (!is_partition(leaf)) return file_.pages(group, own_[leaf]);
  return std::vector<ParquetFile::PageRows>{{.rows = {0, rows(group)}, .range = range_of(group, leaf)}};
}

Result<codec::ChunkedArray> TableFile::column(std::size_t leaf, const ParquetFile::Groups& groups,
                                              const ParquetFile::Elements& elements) const {
  if (!is_partition(leaf)) return file_.column(own_[leaf], groups, elements);
  constexpr std::uint64_t kChunkRows = 1u << 20;
  const PartitionColumn& key = partition(leaf);
  codec::ChunkedArray array;
  array.name = format("'{}' of the path", printable(key.leaf.name));
  array.element_bytes = static_cast<std::uint32_t>(size_of(elements.type));
  array.fill = elements.fill;
  if (key.text) {
    const std::string_view why =
        parquet::store_number(parquet::Number(key.number), elements.type, array.fill.data());
    if (!why.empty())
      return invalid("column '{}': {} {} in {}", printable(key.leaf.name), key.number, why,
                     parquet::numpy_name(elements.type));
  }
  std::uint64_t rows = 0;
  for (std::size_t group = groups.first; group < groups.first + groups.count; ++group)
    rows += this->rows(group);
  array.shape = {rows};
  array.chunks = {kChunkRows};
  array.coder = codec::plain_coder(1);
  array.stored_chunks.resize((rows + kChunkRows - 1) / kChunkRows);  // missing: each reads as the fill value
  return array;
}

}  // namespace stoker::sources
