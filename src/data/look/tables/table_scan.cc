#include "data/look/tables/table_scan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "data/look/tables/condition.h"
#include "data/look/tables/leaf_kind.h"
#include "data/look/tables/row_filter.h"
#include "data/look/tables/row_sample.h"
#include "data/look/tables/table_plan.h"

namespace stoker::data {

namespace {

using formats::ParquetFile;
using formats::ParquetRange;
using formats::ParquetValues;

Result<std::optional<RowFilter>> filter_of(const TableSource& table, const TableOptions& options) {
  if (options.where.empty()) return std::optional<RowFilter>();
  OK_OR_RETURN(condition, parse_condition(options.where));
  Result<RowFilter> filter = RowFilter::create(condition, table.file.leaves());
  if (!filter.ok()) return filter.status().with_context(table.subject);
  return std::optional(std::move(*filter));
}

class Unpacking {
 public:
  Unpacking(const TableSource& table, const TablePlan& plan, const TableOptions& options,
            const std::optional<RowFilter>& filter, File& out)
      : table_(table),
        plan_(plan),
        filter_(filter),
        leaves_(plan.leaves()),
        rows_(table.file.leaves(), plan, options, out, {table.subject, table.stem}) {}

  Result<ShardScan> run(const Progress& progress) {
    std::uint64_t first = 0;
    facts_.groups = table_.file.groups();
    facts_.rows = table_.file.rows();
    for (std::size_t group = 0; group < table_.file.groups(); ++group) {
      if (progress.stop_requested())
        return cancelled("{}: interrupted while it was unpacked", table_.subject);
      const std::uint64_t rows = table_.file.rows(group);
      RETURN_IF_ERROR(take_group(group, rows, first));
      first += rows;
    }
    RETURN_IF_ERROR(rows_.finish());
    for (const std::string& name : plan_.not_taken) scan_.not_taken[name] = scan_.samples.size();
    scan_.bytes = rows_.bytes();
    scan_.end = rows_.bytes();
    scan_.classes = rows_.take_classes();
    scan_.table = facts_;
    return std::move(scan_);
  }

 private:
  // `first` is its first row's number.
  Status take_group(std::size_t group, std::uint64_t rows, std::uint64_t first) {
    std::vector<std::uint64_t> chosen;
    std::vector<ParquetValues> values(table_.file.leaves().size());
    std::set<std::size_t> is_read;
    if (filter_) {
      if (!may_hold(group, rows)) return {};
      ++facts_.groups_read;
      std::vector<ParquetValues> compared;
      for (const std::size_t leaf : filter_->leaves()) {
        OK_OR_RETURN(found, table_.file.read_leaf(group, leaf));
        compared.push_back(std::move(found));
      }
      for (std::uint64_t row = 0; row < rows; ++row) {
        if (filter_->holds(compared, row)) chosen.push_back(row);
      }
      if (chosen.empty()) return {};
      for (std::size_t i = 0; i < compared.size(); ++i) {
        values[filter_->leaves()[i]] = std::move(compared[i]);
        is_read.insert(filter_->leaves()[i]);
      }
    } else {
      ++facts_.groups_read;
    }
    for (const std::size_t leaf : leaves_) {
      if (is_read.contains(leaf)) continue;
      OK_OR_RETURN(found, table_.file.read_leaf(group, leaf));
      values[leaf] = std::move(found);
    }
    const std::uint64_t count = filter_ ? chosen.size() : rows;
    facts_.chosen += count;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = filter_ ? chosen[i] : i;
      OK_OR_RETURN(sample, rows_.sample(values, row, first + row));
      if (sample) scan_.samples.push_back(std::move(*sample));
      if (!sample) ++facts_.dropped;
    }
    return {};
  }

  bool may_hold(std::size_t group, std::uint64_t rows) const {
    std::vector<ParquetRange> ranges;
    for (const std::size_t leaf : filter_->leaves())
      ranges.push_back(table_.file.range_of(group, leaf).value_or(ParquetRange()));
    return filter_->may_hold(ranges, rows);
  }

  const TableSource& table_;
  const TablePlan& plan_;
  const std::optional<RowFilter>& filter_;
  std::vector<std::size_t> leaves_;
  RowSamples rows_;
  ShardScan scan_;
  TableFacts facts_;
};

}  // namespace

Result<ShardScan> unpack_rows(const TableSource& table, const TableOptions& options, File& out,
                              Progress& progress) {
  OK_OR_RETURN(filter, filter_of(table, options));
  Result<TablePlan> plan = plan_table(table.file.leaves(), options);
  if (!plan.ok()) return plan.status().with_context(table.subject);
  return Unpacking(table, *plan, options, filter, out).run(progress);
}

bool has_numbers_only(const ParquetFile& file) {
  bool has_numbers = false;
  for (const formats::ParquetLeaf& leaf : file.leaves()) {
    if (leaf.lists == 0 && leaf.type == formats::ParquetLeaf::Type::bytes) return false;
    has_numbers = has_numbers || number_type(leaf);
  }
  return has_numbers;
}

}  // namespace stoker::data
