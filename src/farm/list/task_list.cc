#include "farm/list/task_list.h"

#include <algorithm>
#include <limits>

#define XXH_INLINE_ALL  // header-only
#include <xxhash.h>

#include "base/file.h"
#include "codec/csv.h"
#include "farm/list/yaml_tasks.h"

namespace stoker::farm {

namespace {

constexpr ByteCount kMostBytes = 16_GiB;
constexpr std::size_t kMostTasks = std::numeric_limits<TaskIndex>::max() / 2;
constexpr std::size_t kLongestLine = 1'000'000;

bool has_extension(std::string_view name, std::initializer_list<std::string_view> extensions) {
  const std::string extension = to_lower(Path(name).extension().string());
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

// The length of "12" in "12 ./a.out", or 0.
std::size_t case_number_length(std::string_view line) {
  std::size_t digits = 0;
  while (digits < line.size() && line[digits] >= '0' && line[digits] <= '9') ++digits;
  if (digits == 0 || digits > 18 || digits == line.size()) return 0;
  return line[digits] == ' ' || line[digits] == '\t' ? digits : 0;
}

}  // namespace

Result<TaskList> TaskList::load(const Path& file, const std::vector<std::string>& command,
                                const TaskNeeds& defaults) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kMostBytes));
  return parse(file.string(), std::move(text), command, defaults);
}

Result<TaskList> TaskList::parse(const std::string& name, std::string text,
                                 const std::vector<std::string>& command, const TaskNeeds& defaults) {
  TaskList list;
  list.defaults_ = defaults;
  if (command.empty() && has_extension(name, {".yaml", ".yml", ".json"})) {
    STOKER_ASSIGN_OR_RETURN(tasks, parse_yaml_tasks(name, std::move(text), defaults));
    list.extras_ = std::move(tasks);
  } else {
    list.text_ = std::move(text);
    if (!command.empty()) {
      STOKER_ASSIGN_OR_RETURN(pattern, CommandPattern::parse(command));
      list.pattern_ = std::move(pattern);
    }
    const bool is_table = list.pattern_ && has_extension(name, {".csv", ".tsv"});
    if (is_table) list.separator_ = has_extension(name, {".tsv"}) ? '\t' : ',';
    STOKER_RETURN_IF_ERROR(is_table ? list.read_rows(name) : list.read_lines(name));
    STOKER_RETURN_IF_ERROR(list.check_placeholders(name));
  }
  if (list.size() == 0) return invalid("{}: no task", name);
  if (list.size() > kMostTasks) return invalid("{}: more than {} tasks", name, grouped(kMostTasks));
  list.make_keys();
  return list;
}

Status TaskList::read_lines(const std::string& name) {
  const std::string_view text = text_;
  std::uint64_t number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view found = trim(text.substr(start, end - start));
    start = end + 1;
    ++number;
    if (found.empty() || found.front() == '#') continue;
    if (found.find('\0') != std::string_view::npos) return invalid("{}:{}: a NUL byte", name, number);
    if (found.size() > kLongestLine)
      return invalid("{}:{}: longer than {} bytes", name, number, grouped(kLongestLine));
    const bool has_number = !pattern_ && case_number_length(found) > 0;
    if (spans_.empty()) has_case_numbers_ = has_number;
    if (has_number != has_case_numbers_)
      return invalid("{}:{}: {}", name, number,
                     has_number ? "begins with a number, unlike the lines before"
                                : "no case number, unlike the lines before");
    spans_.push_back(
        {static_cast<std::uint64_t>(found.data() - text.data()), static_cast<std::uint32_t>(found.size())});
  }
  return {};
}

Status TaskList::read_rows(const std::string& name) {
  const std::string_view text = text_;
  std::size_t start = 0;
  std::uint64_t number = 0;
  while (start < text.size()) {
    // A row ends at the first line end outside quotes.
    std::size_t end = start;
    for (bool is_quoted = false; end < text.size() && (is_quoted || text[end] != '\n'); ++end)
      is_quoted = is_quoted != (text[end] == '"');
    const std::string_view row = text.substr(start, end - start);
    codec::CsvReader reader(row, separator_, name);
    auto fields = reader.next();
    if (!fields) return invalid("{}: row {}: {}", name, number, fields.error().message());
    if (row.size() > kLongestLine)
      return invalid("{}: row {}: longer than {} bytes", name, number, grouped(kLongestLine));
    if (*fields) {
      if (columns_.empty()) {
        columns_ = **fields;
      } else if ((*fields)->size() != columns_.size()) {
        return invalid("{}: row {}: {} fields (the header has {})", name, number, (*fields)->size(),
                       columns_.size());
      } else {
        spans_.push_back({start, static_cast<std::uint32_t>(row.size())});
      }
      ++number;
    }
    start = end + 1;
  }
  return {};
}

Status TaskList::check_placeholders(const std::string& name) const {
  if (!pattern_) return {};
  const std::vector<std::string_view> known(columns_.begin(), columns_.end());
  for (const std::string& placeholder : pattern_->names()) {
    std::uint64_t number = 0;
    if (placeholder.empty() || placeholder == "#" ||
        std::find(known.begin(), known.end(), placeholder) != known.end())
      continue;
    const bool is_number = parse_number(placeholder, &number) && number > 0;
    if (is_number && (columns_.empty() || number <= columns_.size())) continue;
    return invalid("{}: {{{}}} is no column{}", name, printable(placeholder), suggestion(placeholder, known));
  }
  return {};
}

// Equal commands differ by how many come before.
void TaskList::make_keys() {
  const auto count = static_cast<TaskIndex>(size());
  keys_.resize(count);
  for (TaskIndex task = 0; task < count; ++task) {
    std::string identity = extras_.empty() ? "" : extras_[task].name;
    identity += '\n';
    identity += command(task);
    keys_[task] = XXH64(identity.data(), identity.size(), 0);
  }
  std::vector<TaskIndex> order(count);
  for (TaskIndex task = 0; task < count; ++task) order[task] = task;
  std::sort(order.begin(), order.end(),
            [&](TaskIndex a, TaskIndex b) { return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b; });
  std::uint64_t seed = 0;
  std::uint64_t before = 0;
  for (TaskIndex i = 0; i < count; ++i) {
    std::uint64_t& key = keys_[order[i]];
    seed = i > 0 && key == before ? seed + 1 : 0;
    before = key;
    if (seed > 0) key = XXH64(&before, sizeof before, seed);
  }
  digest_ = XXH64(keys_.data(), keys_.size() * sizeof keys_[0], 0);
}

std::string_view TaskList::line(TaskIndex task) const {
  return std::string_view(text_).substr(spans_[task].offset, spans_[task].length);
}

std::optional<std::string> TaskList::value_of(TaskIndex task, std::string_view placeholder) const {
  const std::string_view row = line(task);
  if (placeholder.empty()) return std::string(row);
  if (placeholder == "#") return name(task);
  std::vector<std::string> fields;
  if (separator_ != 0) {
    codec::CsvReader reader(row, separator_, "");
    auto read = reader.next();
    if (read && *read) fields = **std::move(read);
  } else {
    for (std::string_view left = row; !left.empty();) {
      const std::size_t end = std::min(left.find_first_of(" \t"), left.size());
      if (end > 0) fields.emplace_back(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
  const auto column = std::find(columns_.begin(), columns_.end(), placeholder);
  std::uint64_t number = static_cast<std::uint64_t>(column - columns_.begin()) + 1;
  if (column == columns_.end() && !parse_number(placeholder, &number)) return std::nullopt;
  if (number == 0 || number > fields.size()) return std::nullopt;
  return fields[number - 1];
}

std::string TaskList::command(TaskIndex task) const {
  if (!extras_.empty()) return extras_[task].command;
  if (!pattern_) {
    const std::string_view found = line(task);
    return std::string(has_case_numbers_ ? trim(found.substr(case_number_length(found))) : found);
  }
  std::string filled = pattern_->fill([&](std::string_view name) { return value_of(task, name); });
  if (!pattern_->names().empty()) return filled;
  // As GNU parallel: without a placeholder the line is the last argument.
  if (columns_.empty()) return filled + ' ' + shell_quote(line(task));
  for (const std::string& column : columns_)
    filled += ' ' + shell_quote(format("--{}={}", column, value_of(task, column).value_or("")));
  return filled;
}

std::string TaskList::name(TaskIndex task) const {
  if (!extras_.empty()) return extras_[task].name;
  if (!has_case_numbers_) return format("{}", task + 1);
  const std::string_view found = line(task);
  return std::string(found.substr(0, case_number_length(found)));
}

std::optional<TaskIndex> TaskList::find(std::string_view wanted) const {
  std::uint64_t number = 0;
  if (extras_.empty() && !has_case_numbers_) {
    if (!parse_number(wanted, &number) || number == 0 || number > size()) return std::nullopt;
    return static_cast<TaskIndex>(number - 1);
  }
  for (TaskIndex task = 0; task < size(); ++task) {
    if (name(task) == wanted) return task;
  }
  return std::nullopt;
}

const TaskNeeds& TaskList::needs(TaskIndex task) const {
  return extras_.empty() ? defaults_ : extras_[task].needs;
}

}  // namespace stoker::farm
