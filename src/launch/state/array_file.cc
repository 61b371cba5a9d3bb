#include "launch/state/array_file.h"

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "job/read_job.h"

namespace stoker::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "stoker-array";
constexpr int kVersion = 1;
constexpr ByteCount kLongest = 256_MiB;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

Json to_json(const job::ArrayTask& task) {
  Json values = Json::object();
  for (const auto& [name, value] : task.values) values[name] = value;
  return {{"values", values}, {"set", task.settings}};
}

job::ArrayTask task_of(const Json& object) {
  job::ArrayTask task;
  task.settings = texts_of(object, "set");
  const auto values = object.find("values");
  if (values == object.end() || !values->is_object()) return task;
  for (const auto& [name, value] : values->items()) {
    if (value.is_string()) task.values.emplace_back(name, value.get<std::string>());
  }
  return task;
}

std::uint32_t small(const Json& value) {
  if (!value.is_number_integer()) return 0;
  const auto number = value.get<std::int64_t>();
  return number < 1 || number > static_cast<std::int64_t>(job::kMaxTasks)
             ? 0
             : static_cast<std::uint32_t>(number);
}

}  // namespace

std::uint32_t TaskArrayFile::jobs() const {
  return static_cast<std::uint32_t>((chosen.size() + bundle - 1) / bundle);
}

std::vector<std::uint32_t> TaskArrayFile::tasks_of(std::uint32_t index) const {
  if (index < 1 || index > jobs()) return {};
  const std::size_t begin = std::size_t{index - 1} * bundle;
  const std::size_t end = std::min(begin + bundle, chosen.size());
  return {chosen.begin() + static_cast<std::ptrdiff_t>(begin),
          chosen.begin() + static_cast<std::ptrdiff_t>(end)};
}

Result<job::Job> TaskArrayFile::job_of(std::uint32_t task) const {
  STOKER_CHECK(task >= 1 && task <= tasks.size());
  job::LoadOptions with = options;
  with.task = tasks[task - 1].settings;
  auto read = job::read_job({.name = job_file, .text = text, .folder = folder}, with);
  if (!read.ok()) return std::move(read).error().with_context(format("task {}", task));
  read->array.over.reset();
  return std::move(*read);
}

Path array_path(const record::Attempt& attempt) { return attempt.folder() / "array.json"; }

bool is_array(const record::Attempt& attempt) { return path_exists(array_path(attempt)); }

Status write_array_file(const record::Attempt& attempt, const TaskArrayFile& array) {
  Json tasks = Json::array();
  for (const job::ArrayTask& task : array.tasks) tasks.push_back(to_json(task));
  const Json object = {{"format", kFormat},
                       {"version", kVersion},
                       {"job_file", array.job_file},
                       {"folder", array.folder.string()},
                       {"current_directory", array.options.current_directory.string()},
                       {"environment", array.options.environment},
                       {"set", array.options.set},
                       {"bundle", array.bundle},
                       {"links", array.links},
                       {"chosen", array.chosen},
                       {"tasks", tasks},
                       {"text", array.text}};
  // It has the environment of the submission.
  return write_file(array_path(attempt), json_text(object) + "\n", Durability::synced, Access::owner);
}

Result<TaskArrayFile> parse_array_file(std::string_view name, std::string_view text) {
  const Json object = parse_json<Json>(text);
  if (!object.is_object() || text_of(object, "format") != kFormat)
    return corrupt("{}: not an array.json", name);
  const auto version = object.find("version");
  if (version == object.end() || *version != kVersion)
    return invalid("{}: written by another version of stoker", name);
  TaskArrayFile array;
  array.job_file = text_of(object, "job_file");
  array.text = text_of(object, "text");
  array.folder = text_of(object, "folder");
  array.options.current_directory = text_of(object, "current_directory");
  array.options.environment = texts_of(object, "environment");
  array.options.set = texts_of(object, "set");
  array.bundle = object.contains("bundle") ? small(object["bundle"]) : 0;
  array.links = object.contains("links") ? small(object["links"]) : 0;
  const auto tasks = object.find("tasks");
  const auto chosen = object.find("chosen");
  const bool has_lists =
      tasks != object.end() && tasks->is_array() && chosen != object.end() && chosen->is_array();
  if (!has_lists || tasks->size() > job::kMaxTasks || array.bundle == 0 || !array.folder.is_absolute() ||
      !array.options.current_directory.is_absolute())
    return corrupt("{}: not an array.json", name);
  for (const Json& each : *tasks) array.tasks.push_back(task_of(each));
  for (const Json& each : *chosen) {
    const std::uint32_t number = small(each);
    const bool is_next = array.chosen.empty() || number > array.chosen.back();
    if (number == 0 || number > array.tasks.size() || !is_next) return corrupt("{}: not an array.json", name);
    array.chosen.push_back(number);
  }
  return array;
}

Result<TaskArrayFile> read_array_file(const record::Attempt& attempt) {
  const Path path = array_path(attempt);
  STOKER_ASSIGN_OR_RETURN(text, read_file(path, kLongest));
  return parse_array_file(printable(path.string()), text);
}

}  // namespace stoker::launch
