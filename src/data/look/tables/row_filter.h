// Which rows of a Parquet file a condition chooses, by SQL's logic of three values: a comparison with a value
// that is missing is neither true nor false, and only rows for which the whole is true are taken. Immutable,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/look/tables/condition.h"
#include "format/parquet/leaf.h"

namespace stoker::data {

class RowFilter {
 public:
  /// Looks the condition's columns up. Invalid for one that is not there, or not of the kind it is compared
  /// with.
  static Result<RowFilter> create(const Condition& condition, std::span<const formats::ParquetLeaf> leaves);

  /// The numbers of the leaves it reads.
  const std::vector<std::size_t>& leaves() const { return leaves_; }

  /// Whether a row of a row group may be taken, by what the file says of the group: one range for each of
  /// leaves().
  bool may_hold(std::span<const formats::ParquetRange> ranges, std::uint64_t rows) const;
  /// Whether the row may be taken, by these values: of a condition with parts of Kind::anything.
  bool may_hold(std::span<const formats::ParquetValues> values, std::uint64_t row) const;
  /// Whether the row is taken. REQUIRES: the values of each of leaves().
  bool holds(std::span<const formats::ParquetValues> values, std::uint64_t row) const;

  /// A condition whose columns are numbers in leaves().
  struct Test {
    Condition::Kind kind = Condition::Kind::all;
    Comparison comparison = Comparison::equal;
    std::vector<Test> parts;
    std::size_t column = 0;
    std::optional<std::size_t> other;      ///< a column that it is compared with
    std::vector<formats::Number> numbers;  ///< or these,
    std::vector<std::string> texts;        ///< or these
  };

 private:
  Test test_;
  std::vector<std::size_t> leaves_;
  std::vector<formats::ParquetLeaf> known_;  // each of leaves_
};

}  // namespace stoker::data
