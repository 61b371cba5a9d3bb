// What the path of a table's file says of all its rows, as Hive and what came after it lay tables out:
// `year=2024/country=FR/part-0.parquet`. Used where Parquet files are listed and read. Plain values.
// Rules: docs/formats/tables.md#partitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/parquet/leaf.h"

namespace stoker::data {

/// A column that has one value in all rows of a file.
struct PathColumn {
  formats::ParquetLeaf leaf;        ///< int32, int64 or text
  std::optional<std::string> text;  ///< none: it is missing
  std::int64_t number = 0;          ///< of a column of numbers
};

struct TablePath {
  std::string name;  ///< of the file, from the folder on that is read; empty: its own name
  std::vector<PathColumn> columns;
};

/// Its values, as if so many rows had been read.
void put_values(const PathColumn& column, std::uint64_t rows, formats::ParquetValues& values);
/// What the statistics of so many rows would say.
formats::ParquetRange range_of(const PathColumn& column, std::uint64_t rows);

/// "country=C%C3%B4te" of a path as "country" and "Côte"; no value where it is Hive's word for none. Nothing
/// for a folder that is no part of a table.
struct PathKey {
  std::string name;
  std::optional<std::string> value;
};
std::optional<PathKey> key_in(std::string_view folder);

}  // namespace stoker::data
