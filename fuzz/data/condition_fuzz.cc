// parse_predicate and parse_tensor on any text; and a valid predicate on rows of a table and on their
// statistics: a selected row must be in a group that may match.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "sources/table_options.h"
#include "sources/tables/filter/row_filter.h"

namespace {

using stoker::parquet::ParquetLeaf;
using stoker::parquet::ParquetRange;
using stoker::parquet::ParquetValues;

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct Column {
  ParquetLeaf leaf;
  ParquetValues values;
  ParquetRange range;
};

// Two rows; the second is null.
template <typename T>
Column column(std::string_view name, ParquetLeaf::Type type, T value, std::string_view logical = "") {
  Column made;
  made.leaf = {.name = std::string(name), .type = type, .logical = std::string(logical), .is_nullable = true};
  const std::string number = bytes_of(value);
  made.values.rows = made.values.slots = 2;
  made.values.numbers.assign(2 * sizeof value, std::byte{0});
  made.values.present = {1, 0};
  std::memcpy(made.values.numbers.data(), number.data(), number.size());
  made.range = {.min = number, .max = number, .null_count = 1};
  return made;
}

std::vector<Column> table() {
  std::vector<Column> columns = {column("n", ParquetLeaf::Type::int64, std::int64_t{3}),
                                 column("f", ParquetLeaf::Type::float32, 0.5F),
                                 column("b", ParquetLeaf::Type::boolean, std::uint8_t{1}),
                                 column("d", ParquetLeaf::Type::int32, std::int32_t{20'000}, "date"),
                                 column("t", ParquetLeaf::Type::bytes, std::uint8_t{0}, "text")};
  columns[4].values.texts = {"apple", ""};
  columns[4].range = {.min = "apple", .max = "apple", .null_count = 1};
  return columns;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto tensor = stoker::sources::parse_tensor(text); tensor.ok() && tensor->columns.empty())
    std::abort();
  const auto condition = stoker::sources::parse_predicate(text);
  if (!condition.ok()) return 0;
  static const std::vector<Column> columns = table();
  std::vector<ParquetLeaf> leaves;
  for (const Column& column : columns) leaves.push_back(column.leaf);
  const auto filter = stoker::sources::RowFilter::create(*condition, leaves);
  if (!filter.ok()) return 0;
  std::vector<ParquetValues> values;
  std::vector<ParquetRange> ranges;
  for (const std::size_t leaf : filter->leaves()) {
    values.push_back(columns[leaf].values);
    ranges.push_back(columns[leaf].range);
  }
  const bool may_match = filter->may_match(ranges, 2);
  for (std::uint64_t row = 0; row < 2; ++row) {
    if (filter->matches(values, row) && !may_match) std::abort();
  }
  return 0;
}
