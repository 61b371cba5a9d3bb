// Partition keys in the path of a table's file, as in Hive: `year=2024/country=FR/part-0.parquet`. Used to
// list and read Parquet files. Plain values. Rules: docs/formats/tables.md#partitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parquet/schema/leaf.h"

namespace stoker::sources {

/// A column with one value for all rows of a file.
struct PartitionColumn {
  parquet::ParquetLeaf leaf;        ///< int32, int64 or text
  std::optional<std::string> text;  ///< none: null
  std::int64_t number = 0;          ///< of a column of numbers
};

struct TablePath {
  std::string name;  ///< of the file, relative to the source folder; empty: its file name
  std::vector<PartitionColumn> columns;
};

/// The values of `rows` rows.
void put_values(const PartitionColumn& column, std::uint64_t rows, parquet::ParquetValues& values);
/// The statistics of `rows` rows.
parquet::ParquetRange range_of(const PartitionColumn& column, std::uint64_t rows);

/// "country=C%C3%B4te" as "country" and "Côte"; no value for Hive's null marker. Nullopt if the folder is not
/// a partition.
struct PartitionKey {
  std::string name;
  std::optional<std::string> value;
};
std::optional<PartitionKey> parse_partition_key(std::string_view folder);

}  // namespace stoker::sources
