#include "record/capsule.h"

#include "base/file.h"
#include "base/secrets.h"
#include "record/json.h"

namespace stoker::record {

namespace {

constexpr std::size_t kMaxDiff = 16u << 20;
constexpr std::size_t kMaxItems = 100'000;

Status write_part(const RunFolder& run, const char* name, std::string_view content,
                  Access access = Access::umask) {
  // Without parents: a run folder that was removed must not reappear with nothing but a capsule.
  const Status made = make_directory(run.capsule());
  if (!made.ok() && made.code() != Code::exists) return made;
  return write_file(run.capsule() / name, content, Durability::synced, access);
}

std::vector<std::pair<std::string, std::string>> hidden_variables(const EnvironmentInfo& facts) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : facts.variables) variables.emplace_back(name, hide_variable(name, value));
  return variables;
}

Json code_json(const CodeInfo& facts) {
  Json object;
  object["root"] = facts.root;
  object["commit"] = facts.commit;
  object["branch"] = facts.branch;
  object["remote"] = facts.remote;
  object["dirty"] = facts.dirty;
  object["diff_bytes"] = facts.diff.size();
  object["diff_truncated"] = facts.diff.size() > kMaxDiff;
  object["untracked"] = facts.untracked;
  return object;
}

Json dataset_json(const DataInfo& facts) {
  Json object;
  object["name"] = facts.name;
  object["source"] = facts.source;
  object["split"] = facts.split;
  object["version"] = facts.version;
  object["samples"] = facts.samples;
  object["shards"] = facts.shards;
  object["bytes"] = facts.bytes;
  return object;
}

Json node_json(const NodeInfo& facts) {
  Json object;
  object["host"] = facts.host;
  object["kernel"] = facts.kernel;
  object["system"] = facts.system;
  object["cpu"] = facts.cpu;
  object["cores"] = facts.cores;
  object["memory_bytes"] = facts.memory_bytes;
  object["gpus"] = facts.gpus;
  object["driver"] = facts.driver;
  return object;
}

std::uint64_t count_of(const Json& object, const char* key) {
  const std::int64_t value = integer_of(object, key);
  return value < 0 ? 0 : static_cast<std::uint64_t>(value);
}

/// Reads the parts of a capsule and collects errors.
class PartReader {
 public:
  PartReader(const RunFolder& run, Capsule& capsule) : folder_(run.capsule()), capsule_(capsule) {}

  std::optional<Json> object(const char* name) {
    auto read = read_json_object(folder_ / name);
    if (read) return *std::move(read);
    note(read.error());
    return std::nullopt;
  }
  std::string text(const char* name) {
    auto read = read_file(folder_ / name);
    if (read) return *std::move(read);
    note(read.error());
    return "";
  }
  /// The objects in the list `key` of the part.
  std::optional<std::vector<Json>> list(const char* name, const char* key) {
    const auto part = object(name);
    if (!part) return std::nullopt;
    const auto found = part->find(key);
    if (found == part->end() || !found->is_array() || found->size() > kMaxItems) {
      note(corrupt("{}: list '{}' is missing", printable((folder_ / name).string()), key));
      return std::nullopt;
    }
    std::vector<Json> items;
    for (const Json& item : *found) {
      if (item.is_object()) items.push_back(item);
    }
    return items;
  }

 private:
  void note(const Status& problem) {
    if (problem.code() != Code::not_found) capsule_.problems.emplace_back(problem.message());
  }

  Path folder_;
  Capsule& capsule_;
};

std::optional<CodeInfo> read_code(PartReader& reader) {
  const auto object = reader.object("code.json");
  if (!object) return std::nullopt;
  CodeInfo facts;
  facts.root = text_of(*object, "root");
  facts.commit = text_of(*object, "commit");
  facts.branch = text_of(*object, "branch");
  facts.remote = text_of(*object, "remote");
  const auto dirty = object->find("dirty");
  facts.dirty = dirty != object->end() && dirty->is_boolean() && dirty->get<bool>();
  facts.untracked = texts_of(*object, "untracked");
  facts.diff = reader.text("code.diff");
  return facts;
}

std::optional<EnvironmentInfo> read_environment(PartReader& reader) {
  const auto object = reader.object("environment.json");
  if (!object) return std::nullopt;
  return EnvironmentInfo{pairs_of(*object, "programs"), pairs_of(*object, "variables"),
                         reader.text("packages.txt")};
}

std::optional<std::vector<DataInfo>> read_data(PartReader& reader) {
  const auto items = reader.list("data.json", "datasets");
  if (!items) return std::nullopt;
  std::vector<DataInfo> all;
  for (const Json& item : *items) {
    all.push_back({text_of(item, "name"), text_of(item, "source"), text_of(item, "split"),
                   text_of(item, "version"), count_of(item, "samples"), count_of(item, "shards"),
                   count_of(item, "bytes")});
  }
  return all;
}

std::optional<std::vector<NodeInfo>> read_execution(PartReader& reader) {
  const auto items = reader.list("execution.json", "nodes");
  if (!items) return std::nullopt;
  std::vector<NodeInfo> all;
  for (const Json& item : *items) {
    all.push_back({text_of(item, "host"), text_of(item, "kernel"), text_of(item, "system"),
                   text_of(item, "cpu"),
                   static_cast<int>(std::min<std::uint64_t>(count_of(item, "cores"), 1'000'000)),
                   count_of(item, "memory_bytes"), texts_of(item, "gpus"), text_of(item, "driver")});
  }
  return all;
}

}  // namespace

Status write_code(const RunFolder& run, const CodeInfo& facts) {
  if (!facts.diff.empty()) {
    STOKER_RETURN_IF_ERROR(
        write_part(run, "code.diff", std::string_view(facts.diff).substr(0, kMaxDiff), Access::owner));
  }
  return write_part(run, "code.json", to_file_text(code_json(facts)));
}

Status write_environment(const RunFolder& run, const EnvironmentInfo& facts) {
  if (!facts.packages.empty())
    STOKER_RETURN_IF_ERROR(write_part(run, "packages.txt", hide_secrets(facts.packages)));
  Json object;
  object["programs"] = to_json_object(facts.programs);
  object["variables"] = to_json_object(hidden_variables(facts));
  return write_part(run, "environment.json", to_file_text(object), Access::owner);
}

Status write_data(const RunFolder& run, const std::vector<DataInfo>& facts) {
  Json object;
  object["datasets"] = Json::array();
  for (const DataInfo& each : facts) object["datasets"].push_back(dataset_json(each));
  return write_part(run, "data.json", to_file_text(object));
}

Status write_execution(const RunFolder& run, const std::vector<NodeInfo>& facts) {
  Json object;
  object["nodes"] = Json::array();
  for (const NodeInfo& each : facts) object["nodes"].push_back(node_json(each));
  return write_part(run, "execution.json", to_file_text(object));
}

Capsule read_capsule(const RunFolder& run) {
  Capsule capsule;
  PartReader reader(run, capsule);
  capsule.code = read_code(reader);
  capsule.environment = read_environment(reader);
  capsule.data = read_data(reader);
  capsule.execution = read_execution(reader);
  return capsule;
}

}  // namespace stoker::record
