#include "sources/tables/row_selection.h"

#include <set>
#include <utility>

#include "sources/tables/filter/predicate.h"

namespace stoker::sources {

using parquet::ParquetRange;
using parquet::RowRange;

Result<std::optional<RowFilter>> parse_filter(const TableFile& file, const std::string& where,
                                              const std::string& subject) {
  if (where.empty()) return std::optional<RowFilter>();
  STOKER_ASSIGN_OR_RETURN(condition, parse_predicate(where));
  Result<RowFilter> filter = RowFilter::create(condition, file.leaves());
  if (!filter.ok()) return filter.status().with_context(subject);
  return std::optional(std::move(*filter));
}

namespace {

using Pages = std::vector<parquet::ParquetFile::PageRows>;

// The statistics of some rows of a page.
ParquetRange range_within(const parquet::ParquetFile::PageRows& page, const RowRange& rows) {
  ParquetRange range = page.range.value_or(ParquetRange());
  if (range.null_count == page.rows.end - page.rows.begin) {
    range.null_count = rows.end - rows.begin;
  } else if (range.null_count != 0) {
    range.null_count.reset();
  }
  return range;
}

// Rows that may match by page statistics; all rows without statistics.
Result<std::vector<RowRange>> candidate_ranges(const TableFile& file, const RowFilter& filter,
                                               std::size_t group) {
  std::vector<Pages> pages;
  std::set<std::uint64_t> begins{0, file.rows(group)};
  for (const std::size_t leaf : filter.leaves()) {
    STOKER_ASSIGN_OR_RETURN(found, file.pages(group, leaf));
    for (const auto& page : found) begins.insert(page.rows.begin);
    pages.push_back(std::move(found));
  }
  std::vector<RowRange> candidates;
  std::vector<std::size_t> at(pages.size(), 0);  // the page of each leaf
  for (auto begin = begins.begin(); std::next(begin) != begins.end(); ++begin) {
    const RowRange rows{*begin, *std::next(begin)};
    std::vector<ParquetRange> ranges;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      while (at[i] < pages[i].size() && pages[i][at[i]].rows.end <= rows.begin) ++at[i];
      ranges.push_back(at[i] < pages[i].size() ? range_within(pages[i][at[i]], rows) : ParquetRange());
    }
    if (!filter.may_match(ranges, rows.end - rows.begin)) continue;
    const bool continues = !candidates.empty() && candidates.back().end == rows.begin;
    if (continues) candidates.back().end = rows.end;
    if (!continues) candidates.push_back(rows);
  }
  return candidates;
}

}  // namespace

std::vector<RowRange> ranges_of(std::span<const std::uint64_t> rows) {
  std::vector<RowRange> ranges;
  for (const std::uint64_t row : rows) {
    const bool continues = !ranges.empty() && ranges.back().end == row;
    if (continues) ++ranges.back().end;
    if (!continues) ranges.push_back({row, row + 1});
  }
  return ranges;
}

Result<GroupSelection> select_rows(const TableFile& file, const RowFilter& filter, std::size_t group) {
  GroupSelection selection;
  const std::uint64_t rows = file.rows(group);
  std::vector<ParquetRange> ranges;
  for (const std::size_t leaf : filter.leaves())
    ranges.push_back(file.range_of(group, leaf).value_or(ParquetRange()));
  if (!filter.may_match(ranges, rows)) return selection;
  STOKER_ASSIGN_OR_RETURN(candidates, candidate_ranges(file, filter, group));
  if (candidates.empty()) return selection;
  selection.is_read = true;
  for (const std::size_t leaf : filter.leaves()) {
    STOKER_ASSIGN_OR_RETURN(pruned,
                            file.read_rows(group, leaf, candidates, selection.compared.emplace_back()));
    selection.pages_pruned += pruned;
  }
  for (const RowRange& candidate : candidates) {
    for (std::uint64_t row = candidate.begin; row < candidate.end; ++row) {
      if (filter.matches(selection.compared, row)) selection.rows.push_back(row);
    }
  }
  if (selection.rows.empty()) selection.compared.clear();
  return selection;
}

Result<std::vector<std::uint64_t>> selected_rows(const TableFile& file, const RowFilter& filter,
                                                 const std::string& subject, TableFacts& facts,
                                                 const Progress& progress) {
  std::vector<std::uint64_t> selected;
  std::uint64_t first = 0;
  for (std::size_t group = 0; group < file.groups(); ++group) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while reading", subject);
    STOKER_ASSIGN_OR_RETURN(selection, select_rows(file, filter, group));
    if (selection.is_read) ++facts.groups_read;
    facts.pages_pruned += selection.pages_pruned;
    for (const std::uint64_t row : selection.rows) selected.push_back(first + row);
    first += file.rows(group);
  }
  facts.groups += file.groups();
  facts.rows += file.rows();
  facts.selected += selected.size();
  return selected;
}

}  // namespace stoker::sources
