// Selects rows of a Parquet file by a condition with SQL's three-valued logic: a comparison with null is
// neither true nor false, and only rows with a true condition match. Immutable, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/schema/leaf.h"
#include "sources/tables/filter/predicate.h"
#include "stoker/status.h"

namespace stoker::sources {

class RowFilter {
 public:
  /// Resolves the condition's columns. Invalid for a missing column or an incompatible type.
  static Result<RowFilter> create(const Predicate& condition, std::span<const parquet::ParquetLeaf> leaves);

  /// The leaves that it reads.
  const std::vector<std::size_t>& leaves() const { return leaves_; }

  /// Whether a row of a group may match, by its statistics: one range for each of leaves().
  bool may_match(std::span<const parquet::ParquetRange> ranges, std::uint64_t rows) const;
  /// Whether the row may match, for a condition with parts of Kind::unknown.
  bool may_match(std::span<const parquet::ParquetValues> values, std::uint64_t row) const;
  /// Whether the row matches. REQUIRES: the values of each of leaves().
  bool matches(std::span<const parquet::ParquetValues> values, std::uint64_t row) const;

  /// A condition whose columns are indexes into leaves().
  struct Test {
    Predicate::Kind kind = Predicate::Kind::all;
    Comparison comparison = Comparison::equal;
    std::vector<Test> parts;
    std::size_t column = 0;
    std::optional<std::size_t> other;      ///< the other column of a comparison
    std::vector<parquet::Number> numbers;  ///< or these,
    std::vector<std::string> texts;        ///< or these
  };

 private:
  Test test_;
  std::vector<std::size_t> leaves_;
  std::vector<parquet::ParquetLeaf> used_leaves_;  // each of leaves_
};

}  // namespace stoker::sources
