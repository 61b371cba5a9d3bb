#include "data/look/tables/table_scan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "data/look/tables/leaf_kind.h"
#include "data/look/tables/row_choice.h"
#include "data/look/tables/row_lists.h"
#include "data/look/tables/row_sample.h"
#include "data/look/tables/table_layout.h"
#include "data/look/tables/table_plan.h"

namespace stoker::data {

namespace {

using formats::ParquetFile;
using formats::ParquetValues;

class Unpacking {
 public:
  Unpacking(const TableSource& table, const TablePlan& plan, const TableOptions& options,
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
      if (progress.stop_requested())
        return cancelled("{}: interrupted while it was unpacked", table_.subject);
      const std::uint64_t rows = table_.file.rows(group);
      RETURN_IF_ERROR(take_group(group, rows, first));
      first += rows;
    }
    RETURN_IF_ERROR(rows_.finish());
    for (const std::string& name : plan_.not_taken) scan_.not_taken[name] = scan_.samples.size();
    for (const std::string& name : table_.file.covered()) scan_.not_taken[name] = scan_.samples.size();
    scan_.bytes = rows_.bytes();
    scan_.end = rows_.bytes();
    scan_.classes = rows_.take_classes();
    facts_.lengths = rows_.lengths();
    scan_.table = facts_;
    return std::move(scan_);
  }

  /// Of what is not unpacked, in a file of so many bytes, after run().
  Result<formats::ChunkMap> chunks(std::uint64_t shard_bytes) { return layout_->finish(shard_bytes); }

 private:
  // `first` is its first row's number.
  Status take_group(std::size_t group, std::uint64_t rows, std::uint64_t first) {
    GroupChoice choice{.is_read = true, .rows = {}, .compared = {}};
    if (filter_) {
      OK_OR_RETURN(found, choose_rows(table_.file, *filter_, group));
      choice = std::move(found);
    }
    if (choice.is_read) ++facts_.groups_read;
    facts_.pages_passed_over += choice.pages_passed_over;
    if (filter_ && choice.rows.empty()) return {};
    const std::vector<formats::RowRange> wanted =
        filter_ ? ranges_of(choice.rows) : std::vector<formats::RowRange>{{0, rows}};
    values_.resize(table_.file.leaves().size());
    std::set<std::size_t> is_read;
    for (std::size_t i = 0; i < choice.compared.size(); ++i) {
      values_[filter_->leaves()[i]] = std::move(choice.compared[i]);
      is_read.insert(filter_->leaves()[i]);
    }
    for (const std::size_t leaf : leaves_) {
      if (is_read.contains(leaf)) continue;
      OK_OR_RETURN(passed_over, table_.file.read_rows(group, leaf, wanted, values_[leaf]));
      facts_.pages_passed_over += passed_over;
    }
    if (layout_) RETURN_IF_ERROR(layout_->begin_group(values_));
    const std::uint64_t count = filter_ ? choice.rows.size() : rows;
    facts_.chosen += count;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = filter_ ? choice.rows[i] : i;
      OK_OR_RETURN(sample, rows_.sample(values_, row, first + row));
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
  RowSamples rows_;
  std::optional<TableLayout> layout_;  // none where rows are unpacked
  std::vector<ParquetValues> values_;  // of each leaf: those of a group, whose memory the next one takes
  ShardScan scan_;
  TableFacts facts_;
};

}  // namespace

Result<ShardScan> unpack_rows(const TableSource& table, const TableOptions& options, File& out,
                              Progress& progress) {
  OK_OR_RETURN(filter, filter_of(table.file, options.where, table.subject));
  Result<TablePlan> plan = plan_table(table.file.leaves(), table.file.first_of_path(), options);
  if (!plan.ok()) return plan.status().with_context(table.subject);
  return Unpacking(table, *plan, options, filter, &out).run(progress);
}

Result<ShardScan> scan_rows(const TableSource& table, std::uint64_t shard_bytes, const TableOptions& options,
                            const Progress& progress) {
  OK_OR_RETURN(filter, filter_of(table.file, options.where, table.subject));
  Result<TablePlan> plan = plan_table(table.file.leaves(), table.file.first_of_path(), options);
  if (!plan.ok()) return plan.status().with_context(table.subject);
  if (!plan->files.empty()) {
    return invalid("{}: column '{}' holds bytes: with options for numbers it is not read where it lies",
                   table.subject, printable(table.file.leaves()[plan->files[0]].name))
        .cure("stoker data convert SOURCE OUT --format tar, which takes both");
  }
  if (!plan->items.empty()) {
    return invalid("{}: column '{}' holds lists of bytes: these are not read where they lie", table.subject,
                   printable(table.file.leaves()[plan->items[0].leaf].name))
        .cure("stoker data convert SOURCE OUT --format tar, which makes files of them");
  }
  Unpacking reading(table, *plan, options, filter, nullptr);
  OK_OR_RETURN(scan, reading.run(progress));
  scan.bytes = shard_bytes;
  scan.end = shard_bytes;
  if (scan.samples.empty()) return scan;
  OK_OR_RETURN(chunks, reading.chunks(shard_bytes));
  scan.chunks = std::make_shared<const formats::ChunkMap>(std::move(chunks));
  return scan;
}

bool has_numbers_only(const ParquetFile& file) {
  bool has_numbers = false;
  for (const formats::ParquetLeaf& leaf : file.leaves()) {
    if (leaf.lists == 0 && leaf.type == formats::ParquetLeaf::Type::bytes) return false;
    has_numbers = has_numbers || number_type(leaf) || is_list_of_texts(leaf) || is_list_of_bytes(leaf);
  }
  return has_numbers;
}

}  // namespace stoker::data
