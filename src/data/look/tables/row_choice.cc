#include "data/look/tables/row_choice.h"

#include <set>
#include <utility>

#include "data/look/tables/condition.h"

namespace stoker::data {

using formats::ParquetRange;
using formats::RowRange;

Result<std::optional<RowFilter>> filter_of(const TableFile& file, const std::string& where,
                                           const std::string& subject) {
  if (where.empty()) return std::optional<RowFilter>();
  OK_OR_RETURN(condition, parse_condition(where));
  Result<RowFilter> filter = RowFilter::create(condition, file.leaves());
  if (!filter.ok()) return filter.status().with_context(subject);
  return std::optional(std::move(*filter));
}

namespace {

using Pages = std::vector<formats::ParquetFile::PageRows>;

// What is said of some rows of a page.
ParquetRange range_within(const formats::ParquetFile::PageRows& page, const RowRange& rows) {
  ParquetRange range = page.range.value_or(ParquetRange());
  if (range.missing == page.rows.end - page.rows.begin) {
    range.missing = rows.end - rows.begin;
  } else if (range.missing != 0) {
    range.missing.reset();
  }
  return range;
}

// The rows that may be chosen, by what is said of pages; all where nothing is.
Result<std::vector<RowRange>> stretches_of(const TableFile& file, const RowFilter& filter,
                                           std::size_t group) {
  std::vector<Pages> pages;
  std::set<std::uint64_t> begins{0, file.rows(group)};
  for (const std::size_t leaf : filter.leaves()) {
    OK_OR_RETURN(found, file.pages(group, leaf));
    for (const auto& page : found) begins.insert(page.rows.begin);
    pages.push_back(std::move(found));
  }
  std::vector<RowRange> stretches;
  std::vector<std::size_t> at(pages.size(), 0);  // the page of each leaf
  for (auto begin = begins.begin(); std::next(begin) != begins.end(); ++begin) {
    const RowRange rows{*begin, *std::next(begin)};
    std::vector<ParquetRange> ranges;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      while (at[i] < pages[i].size() && pages[i][at[i]].rows.end <= rows.begin) ++at[i];
      ranges.push_back(at[i] < pages[i].size() ? range_within(pages[i][at[i]], rows) : ParquetRange());
    }
    if (!filter.may_hold(ranges, rows.end - rows.begin)) continue;
    const bool goes_on = !stretches.empty() && stretches.back().end == rows.begin;
    if (goes_on) stretches.back().end = rows.end;
    if (!goes_on) stretches.push_back(rows);
  }
  return stretches;
}

}  // namespace

std::vector<RowRange> ranges_of(std::span<const std::uint64_t> rows) {
  std::vector<RowRange> ranges;
  for (const std::uint64_t row : rows) {
    const bool goes_on = !ranges.empty() && ranges.back().end == row;
    if (goes_on) ++ranges.back().end;
    if (!goes_on) ranges.push_back({row, row + 1});
  }
  return ranges;
}

Result<GroupChoice> choose_rows(const TableFile& file, const RowFilter& filter, std::size_t group) {
  GroupChoice choice;
  const std::uint64_t rows = file.rows(group);
  std::vector<ParquetRange> ranges;
  for (const std::size_t leaf : filter.leaves())
    ranges.push_back(file.range_of(group, leaf).value_or(ParquetRange()));
  if (!filter.may_hold(ranges, rows)) return choice;
  OK_OR_RETURN(stretches, stretches_of(file, filter, group));
  if (stretches.empty()) return choice;
  choice.is_read = true;
  for (const std::size_t leaf : filter.leaves()) {
    OK_OR_RETURN(passed_over, file.read_rows(group, leaf, stretches, choice.compared.emplace_back()));
    choice.pages_passed_over += passed_over;
  }
  for (const RowRange& stretch : stretches) {
    for (std::uint64_t row = stretch.begin; row < stretch.end; ++row) {
      if (filter.holds(choice.compared, row)) choice.rows.push_back(row);
    }
  }
  if (choice.rows.empty()) choice.compared.clear();
  return choice;
}

Result<std::vector<std::uint64_t>> chosen_rows(const TableFile& file, const RowFilter& filter,
                                               const std::string& subject, TableFacts& facts,
                                               const Progress& progress) {
  std::vector<std::uint64_t> chosen;
  std::uint64_t first = 0;
  for (std::size_t group = 0; group < file.groups(); ++group) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was read", subject);
    OK_OR_RETURN(choice, choose_rows(file, filter, group));
    if (choice.is_read) ++facts.groups_read;
    facts.pages_passed_over += choice.pages_passed_over;
    for (const std::uint64_t row : choice.rows) chosen.push_back(first + row);
    first += file.rows(group);
  }
  facts.groups += file.groups();
  facts.rows += file.rows();
  facts.chosen += chosen.size();
  return chosen;
}

}  // namespace stoker::data
