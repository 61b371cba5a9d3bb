// A Parquet file with the columns of its path behind its own. What makes samples of tables reads them all
// alike. Immutable, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/look/tables/paths/table_path.h"
#include "format/parquet/parquet.h"

namespace stoker::data {

class TableFile {
 public:
  /// Both must outlive it. A column that the path has too is that of the path.
  TableFile(const formats::ParquetFile& file, const TablePath& path);

  const formats::ParquetFile& file() const { return file_; }
  const std::vector<formats::ParquetLeaf>& leaves() const { return leaves_; }
  /// Those before are the file's, those from there on the path's.
  std::size_t first_of_path() const { return own_.size(); }
  bool is_of_path(std::size_t leaf) const { return leaf >= own_.size(); }
  /// Its number in the file. REQUIRES: it is not of the path.
  std::size_t own(std::size_t leaf) const { return own_[leaf]; }
  /// REQUIRES: it is of the path.
  const PathColumn& of_path(std::size_t leaf) const { return path_.columns[leaf - own_.size()]; }
  /// The file's columns that are not read, for the path has them: as they are named among what is not taken.
  const std::vector<std::string>& covered() const { return covered_; }

  std::uint64_t rows() const { return file_.rows(); }
  std::size_t groups() const { return file_.groups(); }
  std::uint64_t rows(std::size_t group) const { return file_.rows(group); }

  // As the file's.
  Status read_leaf(std::size_t group, std::size_t leaf, formats::ParquetValues& values) const;
  Result<std::uint64_t> read_rows(std::size_t group, std::size_t leaf,
                                  std::span<const formats::RowRange> rows,
                                  formats::ParquetValues& values) const;
  std::optional<formats::ParquetRange> range_of(std::size_t group, std::size_t leaf) const;
  Result<std::vector<formats::ParquetFile::PageRows>> pages(std::size_t group, std::size_t leaf) const;
  /// A column of the path is an array of which no chunk is stored.
  Result<formats::ChunkedArray> column(std::size_t leaf, const formats::ParquetFile::Groups& groups,
                                       const formats::ParquetFile::Elements& elements) const;

 private:
  const formats::ParquetFile& file_;
  const TablePath& path_;
  std::vector<formats::ParquetLeaf> leaves_;
  std::vector<std::size_t> own_;
  std::vector<std::string> covered_;
};

}  // namespace stoker::data
