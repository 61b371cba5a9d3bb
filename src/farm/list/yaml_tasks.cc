#include "farm/list/yaml_tasks.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "config/source.h"
#include "config/yaml.h"

namespace stoker::farm {

namespace {

using config::Node;

constexpr std::array<std::string_view, 9> kTaskKeys = {"name", "command", "cores", "gpus", "memory",
                                                       "time", "after",   "makes", "needs"};
constexpr config::Limits kTaskLimits{
    .bytes = 64'000'000, .depth = 8, .nodes = 4'000'000, .expanded_bytes = 64'000'000};

// Reads the tasks of one document.
class TaskReader {
 public:
  explicit TaskReader(std::shared_ptr<const config::Source> source) : source_(std::move(source)) {}

  Result<std::vector<TaskExtras>> read(const TaskNeeds& defaults);

 private:
  void fail(std::size_t offset, std::string_view fact) { errors_.add({source_, offset}, fact); }
  std::string text(const Node& node);
  std::vector<std::string> texts(const Node& node);
  std::uint32_t count(const Node& node, std::uint32_t least);
  TaskExtras task(const Node& node, const TaskNeeds& defaults);
  void read_needs(const Node& node, TaskNeeds& needs);
  void link(const std::vector<Node>& items, std::vector<TaskExtras>& tasks);
  void refuse_circles(const std::vector<Node>& items, const std::vector<TaskExtras>& tasks);

  std::shared_ptr<const config::Source> source_;
  config::ErrorList errors_;
  std::vector<std::vector<std::string>> after_names_;
};

std::string TaskReader::text(const Node& node) {
  if (node.kind == Node::Kind::scalar && node.text.find('\0') == std::string::npos) return node.text;
  fail(node.offset, "is not a text");
  return "";
}

std::vector<std::string> TaskReader::texts(const Node& node) {
  if (node.kind != Node::Kind::list) return {text(node)};
  std::vector<std::string> found;
  for (const Node& item : node.items) found.push_back(text(item));
  return found;
}

std::uint32_t TaskReader::count(const Node& node, std::uint32_t least) {
  std::uint64_t number = 0;
  constexpr std::uint64_t kMost = 100'000;
  if (node.kind != Node::Kind::scalar || !parse_number(node.text, &number) || number < least ||
      number > kMost)
    fail(node.offset,
         format("'{}' is not a number from {} to {}", printable(node.text), least, grouped(kMost)));
  return static_cast<std::uint32_t>(std::min(number, kMost));
}

void TaskReader::read_needs(const Node& node, TaskNeeds& needs) {
  if (const Node* const cores = node.find("cores")) needs.cores = count(*cores, 1);
  if (const Node* const gpus = node.find("gpus")) needs.gpus = count(*gpus, 0);
  if (const Node* const memory = node.find("memory")) {
    auto bytes = parse_bytes(text(*memory));
    if (!bytes) return fail(memory->offset, bytes.error().message());
    needs.memory = *bytes;
  }
  if (const Node* const time = node.find("time")) {
    auto duration = parse_duration(text(*time));
    if (!duration) return fail(time->offset, duration.error().message());
    needs.time = *duration;
  }
}

TaskExtras TaskReader::task(const Node& node, const TaskNeeds& defaults) {
  TaskExtras task{.needs = defaults};
  after_names_.emplace_back();
  if (node.kind == Node::Kind::scalar) {
    task.command = text(node);
    return task;
  }
  if (node.kind != Node::Kind::map) {
    fail(node.offset, "is not a task ({command: ./simulate 3, cores: 2})");
    return task;
  }
  for (const config::Member& member : node.members) {
    if (std::find(kTaskKeys.begin(), kTaskKeys.end(), member.key) == kTaskKeys.end())
      fail(member.offset,
           format("unknown key '{}'{}", printable(member.key), suggestion(member.key, std::span(kTaskKeys))));
  }
  if (const Node* const name = node.find("name")) task.name = text(*name);
  if (const Node* const command = node.find("command")) task.command = text(*command);
  if (trim(task.command).empty()) fail(node.offset, "a task without a command");
  read_needs(node, task.needs);
  if (const Node* const after = node.find("after")) after_names_.back() = texts(*after);
  if (const Node* const makes = node.find("makes")) {
    for (const std::string& path : texts(*makes)) task.makes.emplace_back(path);
  }
  if (const Node* const inputs = node.find("needs")) {
    for (const std::string& path : texts(*inputs)) task.inputs.emplace_back(path);
  }
  return task;
}

// Names to positions, and files to the tasks that make them.
void TaskReader::link(const std::vector<Node>& items, std::vector<TaskExtras>& tasks) {
  std::map<std::string, TaskIndex> names;
  std::map<Path, TaskIndex> makers;
  for (TaskIndex i = 0; i < tasks.size(); ++i) {
    if (tasks[i].name.empty()) tasks[i].name = format("{}", i + 1);
    if (!names.emplace(tasks[i].name, i).second)
      fail(items[i].offset, format("a second task '{}'", printable(tasks[i].name)));
    for (const Path& file : tasks[i].makes) {
      if (!makers.emplace(file.lexically_normal(), i).second)
        fail(items[i].offset, format("a second task makes {}", printable(file.string())));
    }
  }
  for (TaskIndex i = 0; i < tasks.size(); ++i) {
    for (const std::string& name : after_names_[i]) {
      const auto found = names.find(name);
      if (found == names.end()) {
        fail(items[i].offset, format("after: no task '{}'", printable(name)));
      } else {
        tasks[i].after.push_back(found->second);
      }
    }
    for (const Path& file : tasks[i].inputs) {
      if (const auto maker = makers.find(file.lexically_normal()); maker != makers.end())
        tasks[i].after.push_back(maker->second);
    }
    std::sort(tasks[i].after.begin(), tasks[i].after.end());
    tasks[i].after.erase(std::unique(tasks[i].after.begin(), tasks[i].after.end()), tasks[i].after.end());
  }
}

// Takes away tasks whose predecessors are gone; the remaining ones are in a circle or behind one.
void TaskReader::refuse_circles(const std::vector<Node>& items, const std::vector<TaskExtras>& tasks) {
  std::vector<std::uint32_t> open(tasks.size(), 0);
  std::vector<std::vector<TaskIndex>> followers(tasks.size());
  std::vector<TaskIndex> ready;
  for (TaskIndex i = 0; i < tasks.size(); ++i) {
    open[i] = static_cast<std::uint32_t>(tasks[i].after.size());
    for (const TaskIndex before : tasks[i].after) followers[before].push_back(i);
    if (open[i] == 0) ready.push_back(i);
  }
  std::size_t seen = 0;
  for (; seen < ready.size(); ++seen) {
    for (const TaskIndex next : followers[ready[seen]]) {
      if (--open[next] == 0) ready.push_back(next);
    }
  }
  if (seen == tasks.size()) return;
  const auto stuck = std::find_if(open.begin(), open.end(), [](std::uint32_t count) { return count > 0; });
  const auto index = static_cast<std::size_t>(stuck - open.begin());
  fail(items[index].offset,
       format("task '{}' waits for itself (after, needs)", printable(tasks[index].name)));
}

Result<std::vector<TaskExtras>> TaskReader::read(const TaskNeeds& defaults) {
  const auto root = config::parse_yaml(source_, errors_, kTaskLimits);
  if (!root) return errors_.status();
  if (root->kind != Node::Kind::list) {
    fail(root->offset, "is not a list of tasks (- {command: ./simulate 3, cores: 2})");
    return errors_.status();
  }
  std::vector<TaskExtras> tasks;
  tasks.reserve(root->items.size());
  for (const Node& item : root->items) tasks.push_back(task(item, defaults));
  link(root->items, tasks);
  if (errors_.empty()) refuse_circles(root->items, tasks);
  STOKER_RETURN_IF_ERROR(errors_.status());
  return tasks;
}

}  // namespace

Result<std::vector<TaskExtras>> parse_yaml_tasks(const std::string& name, std::string text,
                                                 const TaskNeeds& defaults) {
  return TaskReader(std::make_shared<const config::Source>(config::Layer::file, name, std::move(text)))
      .read(defaults);
}

}  // namespace stoker::farm
