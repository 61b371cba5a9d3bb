#include "checkpoint/foreign/hugging_face.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/json/json.h"
#include "checkpoint/foreign/file_check.h"

namespace stoker::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kIndexes[] = {"model.safetensors.index.json", "pytorch_model.bin.index.json"};
constexpr std::string_view kWeights[] = {"model.safetensors", "pytorch_model.bin",
                                         "adapter_model.safetensors", "adapter_model.bin"};

Result<Json> read_json(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(path, 256_MiB));
  Json json = parse_json<Json>(text);
  if (json.is_object()) return json;
  return corrupt("{}: is not a JSON object (truncated?)", printable(path.string()));
}

Status check_file(const Path& folder, const std::string& name) {
  const auto kind = file_kind(name);
  if (!path_exists(folder / name)) return corrupt("{}: is missing", name);
  Status status = kind ? check_complete(folder / name, *kind) : Status();
  if (status.ok()) return status;
  const std::string prefix = printable((folder / name).string());
  std::string text(status.message());
  return Status(status.code(), text.starts_with(prefix) ? name + text.substr(prefix.size()) : text);
}

Status check_shards(const Path& folder, std::string_view index) {
  STOKER_ASSIGN_OR_RETURN(json, read_json(folder / index));
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty()) return corrupt("{}: has no weight_map", index);
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || !file_kind(name)) {
      return invalid("{}: '{}' is in '{}'", index, printable(tensor), printable(name));
    }
    files.insert(name);
  }
  for (const std::string& name : files) STOKER_RETURN_IF_ERROR(check_file(folder, name));
  return {};
}

Status check_weights(const Path& folder, const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  for (const std::string_view index : kIndexes) {
    if (has(index)) return check_shards(folder, index);
  }
  for (const std::string_view weights : kWeights) {
    if (has(weights)) return check_file(folder, std::string(weights));
  }
  const bool has_shards = std::ranges::any_of(names, [](const std::string& name) {
    return name.starts_with("model-0") || name.starts_with("pytorch_model-0");
  });
  return has_shards ? corrupt("has shards of weights but no index") : corrupt("has no weights");
}

Status check_trainer_state(const Path& folder) {
  const Path path = folder / "trainer_state.json";
  if (!path_exists(path)) return corrupt("trainer_state.json, which is written last, is missing");
  STOKER_ASSIGN_OR_RETURN(json, read_json(path));
  const auto step = json.find("global_step");
  if (step == json.end() || !step->is_number_unsigned())
    return corrupt("trainer_state.json: has no global_step");
  const std::string expected = format("checkpoint-{}", step->get<std::uint64_t>());
  if (folder.filename() == expected) return {};
  return invalid("trainer_state.json: belongs to step {}", step->get<std::uint64_t>());
}

bool is_trainer_state_file(const std::string& name) {
  return name == "optimizer.pt" || name == "scheduler.pt" || name == "scaler.pt" ||
         (name.starts_with("rng_state") && name.ends_with(".pth"));
}

Status check_all(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  STOKER_RETURN_IF_ERROR(check_weights(folder, names));
  for (const std::string& name : names) {
    if (is_trainer_state_file(name)) STOKER_RETURN_IF_ERROR(check_file(folder, name));
  }
  return check_trainer_state(folder);
}

}  // namespace

Status check_hugging_face(const Path& folder) {
  return check_all(folder).with_context(printable(folder.string()));
}

}  // namespace stoker::checkpoint
