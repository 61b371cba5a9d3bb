#include "sources/tables/table_scan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "sources/tables/filter/leaf_kind.h"
#include "sources/tables/label_names.h"
#include "sources/tables/list_files.h"
#include "sources/tables/row_sample_builder.h"
#include "sources/tables/row_selection.h"
#include "sources/tables/table_layout.h"
#include "sources/tables/table_plan.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using parquet::ParquetFile;
using parquet::ParquetValues;

class TableScanner {
 public:
  TableScanner(const TableSource& table, const TablePlan& plan, const TableOptions& options,
               const std::optional<RowFilter>& filter, File* out)
      : table_(table),
        plan_(plan),
        filter_(filter),
        leaves_(plan.leaves()),
        rows_(table.file.leaves(), plan, options, out, {table.subject, table.stem}) {
    if (out == nullptr) layout_.emplace(table.file, plan, table.subject);
  }

  Result<ShardScan> run(const Progress& progress) {
    std::uint64_t first = 0;
    facts_.files = 1;
    facts_.groups = table_.file.groups();
    facts_.rows = table_.file.rows();
    for (std::size_t group = 0; group < table_.file.groups(); ++group) {
      if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", table_.subject);
      const std::uint64_t rows = table_.file.rows(group);
      STOKER_RETURN_IF_ERROR(scan_group(group, rows, first));
      first += rows;
    }
    STOKER_RETURN_IF_ERROR(rows_.finish());
    for (const std::string& name : plan_.skipped_fields) scan_.skipped_fields[name] = scan_.samples.size();
    for (const std::string& name : table_.file.shadowed()) scan_.skipped_fields[name] = scan_.samples.size();
    scan_.bytes = rows_.bytes();
    scan_.end = rows_.bytes();
    scan_.classes = rows_.take_classes();
    if (plan_.label)
      scan_.class_names =
          class_label_names(table_.file.file().hub_metadata(), table_.file.leaves()[*plan_.label].name);
    facts_.lengths = rows_.lengths();
    scan_.table = facts_;
    return std::move(scan_);
  }

  /// The chunk map if rows are read in place, for a file of `shard_bytes`. REQUIRES: run().
  Result<codec::ChunkMap> chunks(std::uint64_t shard_bytes) { return layout_->finish(shard_bytes); }

 private:
  // `first` is the number of its first row.
  Status scan_group(std::size_t group, std::uint64_t rows, std::uint64_t first) {
    GroupSelection selection{.is_read = true, .rows = {}, .compared = {}};
    if (filter_) {
      STOKER_ASSIGN_OR_RETURN(found, select_rows(table_.file, *filter_, group));
      selection = std::move(found);
    }
    if (selection.is_read) ++facts_.groups_read;
    facts_.pages_pruned += selection.pages_pruned;
    if (filter_ && selection.rows.empty()) return {};
    const std::vector<parquet::RowRange> wanted =
        filter_ ? ranges_of(selection.rows) : std::vector<parquet::RowRange>{{0, rows}};
    values_.resize(table_.file.leaves().size());
    std::set<std::size_t> is_read;
    for (std::size_t i = 0; i < selection.compared.size(); ++i) {
      values_[filter_->leaves()[i]] = std::move(selection.compared[i]);
      is_read.insert(filter_->leaves()[i]);
    }
    for (const std::size_t leaf : leaves_) {
      if (is_read.contains(leaf)) continue;
      STOKER_ASSIGN_OR_RETURN(pruned, table_.file.read_rows(group, leaf, wanted, values_[leaf]));
      facts_.pages_pruned += pruned;
    }
    if (layout_) STOKER_RETURN_IF_ERROR(layout_->begin_group(values_));
    const std::uint64_t count = filter_ ? selection.rows.size() : rows;
    facts_.selected += count;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = filter_ ? selection.rows[i] : i;
      STOKER_ASSIGN_OR_RETURN(sample, rows_.sample(values_, row, first + row));
      if (!sample) ++facts_.dropped;
      if (!sample) continue;
      if (layout_) layout_->place(*sample, first + row);
      scan_.samples.push_back(std::move(*sample));
    }
    return {};
  }

  const TableSource& table_;
  const TablePlan& plan_;
  const std::optional<RowFilter>& filter_;
  std::vector<std::size_t> leaves_;
  RowSampleBuilder rows_;
  std::optional<TableLayout> layout_;  // none if rows are unpacked
  std::vector<ParquetValues> values_;  // of each leaf in the current group; reuses memory
  ShardScan scan_;
  TableFacts facts_;
};

}  // namespace

Result<ShardScan> unpack_rows(const TableSource& table, const TableOptions& options, File& out,
                              Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(filter, parse_filter(table.file, options.where, table.subject));
  Result<TablePlan> plan = plan_table(table.file.leaves(), table.file.first_partition(), options);
  if (!plan.ok()) return plan.status().with_context(table.subject);
  return TableScanner(table, *plan, options, filter, &out).run(progress);
}

Result<ShardScan> scan_rows(const TableSource& table, std::uint64_t shard_bytes, const TableOptions& options,
                            const Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(filter, parse_filter(table.file, options.where, table.subject));
  Result<TablePlan> plan = plan_table(table.file.leaves(), table.file.first_partition(), options);
  if (!plan.ok()) return plan.status().with_context(table.subject);
  if (!plan->files.empty()) {
    return invalid("{}: column '{}' has bytes, which these options cannot read in place", table.subject,
                   printable(table.file.leaves()[plan->files[0]].name))
        .cure("stoker data convert SOURCE OUT --format tar");
  }
  if (!plan->items.empty()) {
    return invalid("{}: column '{}' has lists of bytes, which cannot be read in place", table.subject,
                   printable(table.file.leaves()[plan->items[0].leaf].name))
        .cure("stoker data convert SOURCE OUT --format tar");
  }
  TableScanner reading(table, *plan, options, filter, nullptr);
  STOKER_ASSIGN_OR_RETURN(scan, reading.run(progress));
  scan.bytes = shard_bytes;
  scan.end = shard_bytes;
  if (scan.samples.empty()) return scan;
  STOKER_ASSIGN_OR_RETURN(chunks, reading.chunks(shard_bytes));
  scan.chunks = std::make_shared<const codec::ChunkMap>(std::move(chunks));
  return scan;
}

bool has_numbers_only(const ParquetFile& file) {
  bool has_numbers = false;
  for (const parquet::ParquetLeaf& leaf : file.leaves()) {
    if (leaf.lists == 0 && leaf.type == parquet::ParquetLeaf::Type::bytes) return false;
    has_numbers = has_numbers || number_type(leaf) || is_list_of_texts(leaf) || is_list_of_bytes(leaf);
  }
  return has_numbers;
}

}  // namespace stoker::sources
