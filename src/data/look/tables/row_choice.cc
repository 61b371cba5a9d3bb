#include "data/look/tables/row_choice.h"

#include <utility>

#include "data/look/tables/condition.h"

namespace stoker::data {

using formats::ParquetRange;

Result<std::optional<RowFilter>> filter_of(const TableFile& file, const std::string& where,
                                           const std::string& subject) {
  if (where.empty()) return std::optional<RowFilter>();
  OK_OR_RETURN(condition, parse_condition(where));
  Result<RowFilter> filter = RowFilter::create(condition, file.leaves());
  if (!filter.ok()) return filter.status().with_context(subject);
  return std::optional(std::move(*filter));
}

Result<GroupChoice> choose_rows(const TableFile& file, const RowFilter& filter, std::size_t group) {
  GroupChoice choice;
  const std::uint64_t rows = file.rows(group);
  std::vector<ParquetRange> ranges;
  for (const std::size_t leaf : filter.leaves())
    ranges.push_back(file.range_of(group, leaf).value_or(ParquetRange()));
  if (!filter.may_hold(ranges, rows)) return choice;
  choice.is_read = true;
  for (const std::size_t leaf : filter.leaves()) {
    RETURN_IF_ERROR(file.read_leaf(group, leaf, choice.compared.emplace_back()));
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (filter.holds(choice.compared, row)) choice.rows.push_back(row);
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
    for (const std::uint64_t row : choice.rows) chosen.push_back(first + row);
    first += file.rows(group);
  }
  facts.groups += file.groups();
  facts.rows += file.rows();
  facts.chosen += chosen.size();
  return chosen;
}

}  // namespace stoker::data
