#include "job/starter.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "config/setting.h"
#include "job/check.h"
#include "job/settings.h"

namespace stoker::job {
namespace {

constexpr std::array kScripts = {"train.py", "main.py", "run.py"};
constexpr std::array kVenvs = {".venv", "venv", "env"};
constexpr std::uint32_t kSmallImage = 64;

std::string_view meaning(std::string_view key) {
  const config::KeyKind kind = schema().find(key);
  return kind.setting ? kind.setting->help : std::string_view();
}

std::string_view fallback(std::string_view key) {
  const config::KeyKind kind = schema().find(key);
  return kind.setting ? kind.setting->fallback : std::string_view();
}

// "  every: 1 epoch    # How often ...": a setting with its default.
std::string setting_line(std::string_view indent, std::string_view key) {
  const std::string_view name = key.substr(key.rfind('.') + 1);
  return format("{:<24}# {}\n", format("{}{}: {}", indent, name, fallback(key)), meaning(key));
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The first of these splits that the dataset has; empty for none.
std::string_view split_among(const std::vector<std::string>& splits,
                             std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (has(splits, name)) return name;
  }
  return "";
}

std::string_view training_split(const std::vector<std::string>& splits) {
  const std::string_view named = split_among(splits, {"train"});
  return named.empty() && splits.size() > 1 ? std::string_view(splits.front()) : named;
}

std::string_view validation_split(const std::vector<std::string>& splits) {
  return split_among(splits, {"val", "validation", "test"});
}

std::string source_line(std::string_view name, const std::string& path, std::string_view split) {
  const std::string source = config::yaml_scalar(path);
  if (split.empty()) return format("  {}: {{source: {}}}\n", name, source);
  return format("  {}: {{source: {}, split: {}}}\n", name, source, config::yaml_scalar(split));
}

std::string data_lines(const std::string& path, const std::vector<std::string>& splits,
                       const DatasetRoles& roles) {
  std::string text = "data:                   # each rank finds it as STOKER_DATA_<NAME>\n" +
                     source_line("train", path, training_split(splits));
  if (const std::string_view split = validation_split(splits); !split.empty())
    text += source_line("validation", path, split);
  if (roles.validation != nullptr) {
    const std::vector<std::string>& other = roles.validation->splits;
    const std::string_view named = validation_split(other);
    text += source_line("validation", roles.validation->path,
                        named.empty() && other.size() > 1 ? std::string_view(other.front()) : named);
  }
  for (const FoundDataset* dataset : roles.unused)
    text += format("  # {}: not used\n", config::yaml_scalar(dataset->path));
  return text;
}

std::string trainer_section(bool is_small) {
  std::string text = "# The built-in trainer; to run your own command, write run: COMMAND instead.\ntrain:\n";
  text += format("{:<24}# {}\n", format("  model: {}", is_small ? "cifar-resnet20" : "resnet50"),
                 meaning("train.model"));
  text += setting_line("  ", "train.epochs");
  text += setting_line("  ", "train.batch");
  text += "  optimizer:\n";
  return text + setting_line("    ", "train.optimizer.lr");
}

std::string run_section(const FolderInfo& facts, const DatasetRoles& roles) {
  if (!facts.script && roles.training != nullptr && roles.training->is_trainable)
    return trainer_section(roles.training->width_max > 0 && roles.training->width_max <= kSmallImage);
  if (!facts.script && facts.images && facts.images->is_labelled) return trainer_section(false);
  const std::string script = facts.script.value_or("train.py");
  return format(
      "# Command of every rank, split by shell quoting, with RANK, WORLD_SIZE, MASTER_ADDR ... set.\n"
      "# For pipes and variables: run: {{shell: \"...\"}}. For the built-in trainer: "
      "train: {{model: resnet50}}.\n"
      "# A script can be resumed if it saves to STOKER_CHECKPOINT_DIR and loads STOKER_RESUME (empty at "
      "first).\n"
      "run: {} {}\n",
      facts.venv ? "python" : "python3", config::yaml_scalar(shell_quote(script)));
}

bool name_contains(const FoundDataset& dataset, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return dataset.path.find(word) != std::string::npos; });
}

}  // namespace

FolderInfo inspect_folder(const Path& folder) {
  FolderInfo facts;
  for (char c : folder.filename().string().substr(0, 64)) facts.name += is_name_character(c) ? c : '-';
  if (facts.name.empty() || facts.name.front() == '.') facts.name.insert(0, "job");
  for (const char* script : kScripts) {
    if (!facts.script && path_exists(folder / script)) facts.script = script;
  }
  for (const char* venv : kVenvs) {
    if (!facts.venv && path_exists(folder / venv / "bin" / "python")) facts.venv = venv;
  }
  facts.name.resize(std::min<std::size_t>(facts.name.size(), 64));
  return facts;
}

DatasetRoles assign_roles(const std::vector<FoundDataset>& datasets) {
  DatasetRoles roles;
  if (datasets.empty()) return roles;
  auto training = std::find_if(datasets.begin(), datasets.end(),
                               [](const FoundDataset& each) { return has(each.splits, "train"); });
  if (training == datasets.end())
    training = std::find_if(datasets.begin(), datasets.end(),
                            [](const FoundDataset& each) { return name_contains(each, {"train"}); });
  if (training == datasets.end()) training = datasets.begin();
  roles.training = &*training;
  const bool has_validation = !validation_split(training->splits).empty();
  for (const FoundDataset& each : datasets) {
    if (&each == roles.training) continue;
    if (!has_validation && roles.validation == nullptr && name_contains(each, {"val", "test"})) {
      roles.validation = &each;
    } else {
      roles.unused.push_back(&each);
    }
  }
  return roles;
}

std::string starter_text(const FolderInfo& facts) {
  const DatasetRoles roles = assign_roles(facts.datasets);
  std::string text = "# A stoker job. List of all keys: stoker check --keys\n";
  text += format("name: {}\n\n", config::yaml_scalar(facts.name));
  text += run_section(facts, roles);
  if (roles.training != nullptr) {
    text += "\n" + data_lines(roles.training->path, roles.training->splits, roles);
  } else if (facts.images) {
    text += format("\n# Created by: stoker data pack {} {}\n", shell_quote(facts.images->path),
                   shell_quote(facts.images->packed));
    text += data_lines(facts.images->packed, facts.images->splits, roles);
  } else {
    text +=
        "\n# data:                 # a dataset: stoker data pack FOLDER packed\n#   train: {source: packed, "
        "split: train}\n";
  }
  text += "\nresources:\n";
  text += setting_line("  ", "resources.nodes");
  text += setting_line("  ", "resources.ranks_per_node");
  text += format("  # time: 20h           # {}\n", meaning("resources.time"));
  if (facts.venv)
    text += format("\nenvironment:\n{:<24}# {}\n", "  venv: " + *facts.venv, meaning("environment.venv"));
  text += "\ncheckpoint:\n";
  text += setting_line("  ", "checkpoint.every");
  text += setting_line("  ", "checkpoint.keep_last");
  text += "\nrecord:\n";
  text += format("  # directory: runs     # {}\n", meaning("record.directory"));
  text += setting_line("  ", "record.receipts");
  return text;
}

}  // namespace stoker::job
