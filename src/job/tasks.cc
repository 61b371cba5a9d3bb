#include "job/tasks.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/csv.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "config/schema.h"
#include "config/yaml.h"
#include "config/yaml_text.h"
#include "job/settings.h"

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;

constexpr ByteCount kLongestTable = 64_MiB;

// A single sbatch call requests all tasks, and their records share one folder.
constexpr std::array<std::string_view, 8> kShared = {"name",  "resources", "slurm", "chain",
                                                     "array", "restart",   "after", "record"};

// The setting for a column or member.
Result<std::string> key_of(std::string_view subject, const std::string& name) {
  const std::string shown = printable(name.substr(0, 80));
  if (schema().find(name).setting != nullptr) {
    const std::string_view top = std::string_view(name).substr(0, name.find('.'));
    if (std::find(kShared.begin(), kShared.end(), top) != kShared.end())
      return invalid("{}: '{}' cannot differ between the tasks of an array", subject, shown);
    return name;
  }
  if (name.find('.') != std::string::npos) return invalid("{}: {}", subject, schema().unknown_key(name));
  if (!config::is_name(name))
    return invalid("{}: '{}' is not a name: letters, digits, '_' and '-' only, at most 64", subject, shown);
  return format("params.{}", name);
}

// Collects the values of one row.
class TaskRow {
 public:
  explicit TaskRow(std::string subject) : subject_(std::move(subject)) {}

  Status add(const std::string& name, const std::string& value) {
    STOKER_ASSIGN_OR_RETURN(key, key_of(subject_, name));
    if (config::find_bad_text(value))
      return invalid("{}: {}: '{}' is not valid UTF-8", subject_, name, printable(value.substr(0, 80)));
    if (!names_.insert(key).second) return invalid("{}: '{}' appears twice", subject_, printable(name));
    task_.values.emplace_back(name, value);
    task_.settings.push_back(format("{}={}", key, value));
    return {};
  }
  const std::string& subject() const { return subject_; }
  ArrayTask take() { return std::move(task_); }

 private:
  std::string subject_;
  std::set<std::string> names_;
  ArrayTask task_;
};

bool is_blank(const std::vector<std::string>& cells) { return cells.size() == 1 && cells.front().empty(); }

Result<std::vector<ArrayTask>> parse_csv(std::string_view name, std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t line = 1;
  std::vector<std::string> header;
  std::vector<ArrayTask> tasks;
  while (!text.empty()) {
    const std::size_t at = line;
    STOKER_ASSIGN_OR_RETURN(cells, next_csv_row(name, text, &line));
    if (is_blank(cells)) continue;
    if (header.empty()) {
      TaskRow check(format("{}:{}", name, at));
      for (const std::string& column : cells) STOKER_RETURN_IF_ERROR(check.add(column, ""));
      header = std::move(cells);
      continue;
    }
    if (cells.size() != header.size())
      return invalid("{}:{}: {} cells, but {}", name, at, cells.size(), counted(header.size(), "column"));
    if (tasks.size() == kMaxTasks) return invalid("{}: more than {} tasks", name, kMaxTasks);
    TaskRow row(format("{}:{}", name, at));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty()) STOKER_RETURN_IF_ERROR(row.add(header[i], cells[i]));
    }
    tasks.push_back(row.take());
  }
  return tasks;
}

Status add_json(TaskRow& row, const std::string& name, const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return row.add(name, value.get<std::string>());
  if (!value.is_object()) return row.add(name, json_text(value));
  for (const auto& [member, inner] : value.items())
    STOKER_RETURN_IF_ERROR(add_json(row, name.empty() ? member : name + "." + member, inner));
  return {};
}

Result<std::vector<ArrayTask>> parse_list(std::string_view name, std::string_view text) {
  const Json list = parse_json<Json>(text);
  if (!list.is_array()) return invalid("{}: not a list of objects", name);
  if (list.size() > kMaxTasks) return invalid("{}: more than {} tasks", name, kMaxTasks);
  std::vector<ArrayTask> tasks;
  for (const Json& each : list) {
    TaskRow row(format("{}: task {}", name, tasks.size() + 1));
    if (!each.is_object()) return invalid("{}: is not an object", row.subject());
    STOKER_RETURN_IF_ERROR(add_json(row, "", each));
    tasks.push_back(row.take());
  }
  return tasks;
}

Status add_yaml(TaskRow& row, const std::string& name, const config::Node& node, std::string_view text) {
  switch (node.kind) {
    case config::Node::Kind::null:
      return {};
    case config::Node::Kind::scalar:
      return row.add(name, node.text);
    case config::Node::Kind::list:
      return row.add(name, std::string(text.substr(node.offset, node.end - node.offset)));
    case config::Node::Kind::map:
      for (const config::Member& member : node.members)
        STOKER_RETURN_IF_ERROR(
            add_yaml(row, name.empty() ? member.key : name + "." + member.key, member.value, text));
      return {};
  }
  return {};
}

Result<std::vector<ArrayTask>> parse_yaml_list(std::string_view name, std::string_view text) {
  const auto source =
      std::make_shared<const config::Source>(config::Layer::file, std::string(name), std::string(text));
  config::ErrorList errors;
  const std::optional<config::Node> root = config::parse_yaml(source, errors);
  if (!errors.empty()) return errors.status();
  if (!root || root->kind != config::Node::Kind::list) return invalid("{}: not a list of maps", name);
  if (root->items.size() > kMaxTasks) return invalid("{}: more than {} tasks", name, kMaxTasks);
  std::vector<ArrayTask> tasks;
  for (const config::Node& item : root->items) {
    TaskRow row(source->where(item.offset));
    if (item.kind != config::Node::Kind::map) return invalid("{}: is not a map", row.subject());
    STOKER_RETURN_IF_ERROR(add_yaml(row, "", item, text));
    tasks.push_back(row.take());
  }
  return tasks;
}

}  // namespace

Result<ArrayTasks> parse_tasks(std::string_view name, std::string_view suffix, std::string_view text) {
  const auto parse = [&]() -> Result<std::vector<ArrayTask>> {
    if (suffix == ".csv") return parse_csv(name, text);
    if (suffix == ".json") return parse_list(name, text);
    if (suffix == ".yaml" || suffix == ".yml") return parse_yaml_list(name, text);
    return invalid("{}: not a .csv, .json or .yaml file", name);
  };
  STOKER_ASSIGN_OR_RETURN(tasks, parse());
  if (tasks.empty()) return invalid("{}: contains no task", name);
  return ArrayTasks{std::string(name), std::move(tasks)};
}

Result<ArrayTasks> read_tasks(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kLongestTable));
  return parse_tasks(printable(file.filename().string()), to_lower(file.extension().string()), text);
}

}  // namespace stoker::job
