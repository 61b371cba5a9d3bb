#include "sources/tables/class_names.h"

#include <algorithm>
#include <limits>
#include <set>

#include "stoker/text.h"

namespace stoker::sources {

namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const bool is_number =
      parse_number(text, &number) && number >= 0 && number <= std::numeric_limits<std::int32_t>::max();
  return is_number ? std::optional(number) : std::nullopt;
}

Status different_names(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto name = [](const std::vector<std::string>& names, std::size_t i) {
    return i < names.size() ? printable(names[i]) : std::string();
  };
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return invalid(
             "class names differ between its files: label {} is '{}' in one and '{}' in another (ClassLabel)",
             i, name(a, i), name(b, i))
      .cure("place files with other classes in a separate folder, and pack each folder");
}

// The label of each of a scan's classes.
std::vector<std::int64_t> numbers_of(const std::vector<std::string>& texts,
                                     const std::vector<std::string>& names) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : texts) {
    const auto found = std::lower_bound(names.begin(), names.end(), text);
    numbers.push_back(names.empty() ? number_in(text).value_or(-1) : found - names.begin());
  }
  return numbers;
}

}  // namespace

namespace {

// The names of number labels in the tables' metadata, which must agree.
Result<std::vector<std::string>> declared_classes(std::span<ShardScan* const> scans) {
  std::vector<std::string> names;
  for (const ShardScan* scan : scans) {
    if (scan->class_names.empty() || scan->samples.empty()) continue;
    if (!names.empty() && names != scan->class_names) return different_names(names, scan->class_names);
    names = scan->class_names;
  }
  if (names.empty()) return names;
  std::set<std::string_view> known;
  for (const std::string& name : names) {
    if (!known.insert(name).second)
      return invalid("two of its classes have the name '{}' (ClassLabel)", printable(name));
  }
  for (const ShardScan* scan : scans) {
    for (const ShardSample& sample : scan->samples) {
      if (sample.label.value_or(-1) < static_cast<std::int64_t>(names.size())) continue;
      return invalid("sample '{}' has label {} of {} classes (ClassLabel)", printable(sample.key),
                     *sample.label, names.size());
    }
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> number_classes(std::span<ShardScan* const> scans) {
  std::set<std::string> texts;
  for (const ShardScan* scan : scans) texts.insert(scan->classes.begin(), scan->classes.end());
  std::vector<std::string> names(texts.begin(), texts.end());
  if (names.empty()) return declared_classes(scans);
  if (std::all_of(names.begin(), names.end(),
                  [](const std::string& text) { return number_in(text).has_value(); }))
    names.clear();
  for (ShardScan* scan : scans) {
    if (scan->classes.empty() && !scan->samples.empty())
      return invalid("labels are texts in one file and numbers in another (--label)");
    const std::vector<std::int64_t> numbers = numbers_of(scan->classes, names);
    for (ShardSample& sample : scan->samples) {
      if (sample.label) sample.label = numbers[static_cast<std::size_t>(*sample.label)];
    }
  }
  return names;
}

void add_facts(std::optional<TableFacts>& sum, const TableFacts& facts) {
  if (!sum) sum.emplace();
  sum->groups += facts.groups;
  sum->groups_read += facts.groups_read;
  sum->pages_pruned += facts.pages_pruned;
  sum->rows += facts.rows;
  sum->selected += facts.selected;
  sum->dropped += facts.dropped;
  sum->files += facts.files;
  for (const auto& [name, lengths] : facts.lengths) sum->lengths[name] += lengths;
  sum->files_pruned += facts.files_pruned;
}

Status no_rows_selected(std::string_view subject, const TableFacts& facts) {
  if (facts.files == 0 && facts.files_pruned > 0)
    return invalid("{}: none of {} files can match, by their paths (--where)", subject,
                   grouped(facts.files_pruned));
  if (facts.rows == 0) return invalid("{}: has no rows", subject);
  if (facts.selected == 0)
    return invalid("{}: none of {} rows matches (--where)", subject, grouped(facts.rows));
  return invalid("{}: each of {} rows has a missing value (--missing drop)", subject,
                 grouped(facts.selected));
}

Status not_a_table(std::string_view subject) {
  return invalid("{}: is not Parquet: --columns, --tensor, --where, --label, --key and --missing need tables",
                 subject);
}

}  // namespace stoker::sources
