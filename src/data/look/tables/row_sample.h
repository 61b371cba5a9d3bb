// Makes the sample of one row after the other out of a row group's values. Used by table_scan.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/table_options.h"
#include "data/look/tables/table_plan.h"
#include "format/parquet/leaf.h"

namespace stoker::data {

class RowSamples {
 public:
  struct Names {
    std::string subject;  ///< begins messages
    std::string stem;     ///< begins the keys of rows that have none
  };
  /// All must outlive it. Without `out` nothing is kept of what is made: of a plan without files of bytes,
  /// whose arrays are read where they lie.
  RowSamples(std::span<const formats::ParquetLeaf> leaves, const TablePlan& plan, const TableOptions& options,
             File* out, Names names);

  /// Of row `row` of the values at hand, which are one for each leaf, empty for those that the plan does not
  /// name; `number` counts from the file's first row. Nothing for a row that is left out for a missing value.
  Result<std::optional<ShardSample>> sample(std::span<const formats::ParquetValues> values, std::uint64_t row,
                                            std::uint64_t number);
  /// Writes what is still held.
  Status finish();

  std::uint64_t bytes() const { return written_ + held_.size(); }
  /// Names of labels that were text, in the order in which they came.
  std::vector<std::string> take_classes() { return std::move(classes_); }
  /// By the tensors' names, of the samples that were made.
  const std::map<std::string, LengthFacts>& lengths() const { return lengths_; }

 private:
  using Array = TablePlan::Array;

  struct Row {
    std::span<const formats::ParquetValues> values;
    std::uint64_t row = 0;
    std::uint64_t number = 0;
  };
  // A number of a row: of a leaf, and of its slots.
  struct Slot {
    std::size_t leaf = 0;
    std::uint64_t number = 0;
  };

  Result<bool> take_label(const Row& row, ShardSample& sample);
  Result<bool> take_key(const Row& row, ShardSample& sample);
  Status take_files(const Row& row, ShardSample& sample);
  Status take_items(const Row& row, ShardSample& sample);
  Result<bool> take_array(const Row& row, const Array& array, ShardSample& sample);
  Result<bool> put_vector(const Row& row, const Array& array);
  Result<bool> put_list(const Row& row, const Array& array);
  Result<bool> put_lengthened(const Row& row, const Array& array);
  Result<bool> put_items(const Row& row, const Array& array, std::uint64_t begin, std::uint64_t count);
  Status put_number(const Row& row, const Array& array, Slot slot, std::byte* to) const;
  Result<bool> missing(const Row& row, std::size_t leaf, std::string_view what) const;
  Result<bool> fill(const Row& row, const Array& array, std::size_t leaf, std::byte* to) const;
  Result<std::int64_t> number_of_class(const Row& row, const std::string& text);
  void add_member(ShardSample& sample, const std::string& extension, std::uint64_t at,
                  std::uint64_t bytes) const;
  std::string place(const Row& row, std::size_t leaf) const;
  Status read(std::uint64_t offset, std::span<std::byte> into) const;

  std::span<const formats::ParquetLeaf> leaves_;
  const TablePlan& plan_;
  const TableOptions& options_;
  File* out_;
  std::string subject_;
  std::string stem_;
  std::string held_;  // made, not yet written
  std::uint64_t written_ = 0;
  Shape shape_;                      // of the array at hand
  std::vector<std::byte> elements_;  // and what it holds
  std::map<std::string, LengthFacts> lengths_;
  std::map<std::string, LengthFacts> row_lengths_;  // of the row at hand
  std::vector<std::string> classes_;
  std::unordered_map<std::string, std::int64_t> class_numbers_;
};

}  // namespace stoker::data
