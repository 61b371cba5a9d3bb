// Builds samples from the rows of a row group's values. Used by table_scan. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "parquet/schema/leaf.h"
#include "sources/shard_scan.h"
#include "sources/table_options.h"
#include "sources/tables/table_plan.h"
#include "stoker/status.h"

namespace stoker::sources {

class RowSampleBuilder {
 public:
  struct Names {
    std::string subject;  ///< prefix of messages
    std::string stem;     ///< prefix of the keys of rows without one
  };
  /// All arguments must outlive it. Without `out` converted data is discarded: for a plan without files of
  /// bytes, whose arrays are read in place.
  RowSampleBuilder(std::span<const parquet::ParquetLeaf> leaves, const TablePlan& plan,
                   const TableOptions& options, File* out, Names names);

  /// The sample of row `row` of `values`, which has one entry per leaf, empty for leaves that are not in the
  /// plan. `number` is the row's number in the file. Nullopt for a row that is left out for a missing value.
  Result<std::optional<ShardSample>> sample(std::span<const parquet::ParquetValues> values, std::uint64_t row,
                                            std::uint64_t number);
  /// Writes the buffered data.
  Status finish();

  std::uint64_t bytes() const { return written_ + pending_.size(); }
  /// Text labels in order of appearance.
  std::vector<std::string> take_classes() { return std::move(classes_); }
  /// By tensor name, of the built samples.
  const std::map<std::string, LengthFacts>& lengths() const { return lengths_; }

 private:
  using Array = TablePlan::Array;

  struct Row {
    std::span<const parquet::ParquetValues> values;
    std::uint64_t row = 0;
    std::uint64_t number = 0;
  };
  // A number of a row: leaf and slot.
  struct Slot {
    std::size_t leaf = 0;
    std::uint64_t number = 0;
  };

  Result<bool> read_label(const Row& row, ShardSample& sample);
  Result<bool> read_key(const Row& row, ShardSample& sample);
  Status add_files(const Row& row, ShardSample& sample);
  Status add_items(const Row& row, ShardSample& sample);
  Result<bool> add_array(const Row& row, const Array& array, ShardSample& sample);
  Result<bool> put_vector(const Row& row, const Array& array);
  Result<bool> put_list(const Row& row, const Array& array);
  Result<bool> put_padded_list(const Row& row, const Array& array);
  Result<bool> put_items(const Row& row, const Array& array, std::uint64_t begin, std::uint64_t count);
  Status put_number(const Row& row, const Array& array, Slot slot, std::byte* to) const;
  Result<bool> missing(const Row& row, std::size_t leaf, std::string_view what) const;
  Result<bool> fill(const Row& row, const Array& array, std::size_t leaf, std::byte* to) const;
  Result<std::int64_t> class_number(const Row& row, const std::string& text);
  void add_member(ShardSample& sample, const std::string& extension, std::uint64_t at,
                  std::uint64_t bytes) const;
  std::string place(const Row& row, std::size_t leaf) const;
  Status read(std::uint64_t offset, std::span<std::byte> into) const;

  std::span<const parquet::ParquetLeaf> leaves_;
  const TablePlan& plan_;
  const TableOptions& options_;
  File* out_;
  std::string subject_;
  std::string stem_;
  std::string pending_;  // converted, not yet written
  std::uint64_t written_ = 0;
  Shape shape_;                      // of the current array
  std::vector<std::byte> elements_;  // of the current array
  std::map<std::string, LengthFacts> lengths_;
  std::map<std::string, LengthFacts> row_lengths_;  // of the current row
  std::vector<std::string> classes_;
  std::unordered_map<std::string, std::int64_t> class_numbers_;
};

}  // namespace stoker::sources
