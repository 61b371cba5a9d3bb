// A Parquet file with its partition keys as additional columns, for uniform access. Immutable, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/parquet.h"
#include "sources/table_path.h"
#include "stoker/status.h"

namespace stoker::sources {

class TableFile {
 public:
  /// Both must outlive it. A partition key shadows a column with the same name.
  TableFile(const parquet::ParquetFile& file, const TablePath& path);

  const parquet::ParquetFile& file() const { return file_; }
  const std::vector<parquet::ParquetLeaf>& leaves() const { return leaves_; }
  /// Leaves before it are the file's, the other ones are partition keys.
  std::size_t first_partition() const { return own_.size(); }
  bool is_partition(std::size_t leaf) const { return leaf >= own_.size(); }
  /// Its number in the file. REQUIRES: !is_partition().
  std::size_t own(std::size_t leaf) const { return own_[leaf]; }
  /// REQUIRES: is_partition().
  const PartitionColumn& partition(std::size_t leaf) const { return path_.columns[leaf - own_.size()]; }
  /// Columns of the file that a partition key shadows, as entries for skipped_fields.
  const std::vector<std::string>& shadowed() const { return shadowed_; }

  std::uint64_t rows() const { return file_.rows(); }
  std::size_t groups() const { return file_.groups(); }
  std::uint64_t rows(std::size_t group) const { return file_.rows(group); }

  // As in ParquetFile.
  Status read_leaf(std::size_t group, std::size_t leaf, parquet::ParquetValues& values) const;
  Result<std::uint64_t> read_rows(std::size_t group, std::size_t leaf,
                                  std::span<const parquet::RowRange> rows,
                                  parquet::ParquetValues& values) const;
  std::optional<parquet::ParquetRange> range_of(std::size_t group, std::size_t leaf) const;
  Result<std::vector<parquet::ParquetFile::PageRows>> pages(std::size_t group, std::size_t leaf) const;
  /// A partition key is an array without stored chunks.
  Result<codec::ChunkedArray> column(std::size_t leaf, const parquet::ParquetFile::Groups& groups,
                                     const parquet::ParquetFile::Elements& elements) const;

 private:
  const parquet::ParquetFile& file_;
  const TablePath& path_;
  std::vector<parquet::ParquetLeaf> leaves_;
  std::vector<std::size_t> own_;
  std::vector<std::string> shadowed_;
};

}  // namespace stoker::sources
