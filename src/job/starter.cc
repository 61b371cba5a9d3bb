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

std::string data_lines(const FoundDataset& dataset) {
  const std::string path = config::yaml_scalar(dataset.path);
  std::string training;
  std::string validation;
  if (has(dataset.splits, "train")) training = "train";
  for (std::string_view name : {"val", "validation", "test"}) {
    if (validation.empty() && has(dataset.splits, name)) validation = name;
  }
  if (training.empty() && dataset.splits.size() > 1) training = dataset.splits.front();
  const auto entry = [&](std::string_view name, std::string_view split) {
    if (split.empty()) return format("  {}: {{source: {}}}\n", name, path);
    return format("  {}: {{source: {}, split: {}}}\n", name, path, config::yaml_scalar(split));
  };
  std::string text =
      "data:                   # each rank finds it as STOKER_DATA_<NAME>\n" + entry("train", training);
  if (!validation.empty()) text += entry("validation", validation);
  return text;
}

std::string run_section(const FolderInfo& facts) {
  if (!facts.script && facts.dataset && facts.dataset->is_trainable) {
    const bool is_small = facts.dataset->width_max > 0 && facts.dataset->width_max <= kSmallImage;
    std::string text =
        "# The built-in trainer; to run your own command, write run: COMMAND instead.\ntrain:\n";
    text += format("{:<24}# {}\n", format("  model: {}", is_small ? "cifar-resnet20" : "resnet50"),
                   meaning("train.model"));
    text += setting_line("  ", "train.epochs");
    text += setting_line("  ", "train.batch");
    text += "  optimizer:\n";
    return text + setting_line("    ", "train.optimizer.lr");
  }
  const std::string script = facts.script.value_or("train.py");
  return format(
      "# Command of every rank, split by shell quoting, with RANK, WORLD_SIZE, MASTER_ADDR ... set.\n"
      "# For pipes and variables: run: {{shell: \"...\"}}. For the built-in trainer: "
      "train: {{model: resnet50}}.\n"
      "run: {} {}\n",
      facts.venv ? "python" : "python3", config::yaml_scalar(shell_quote(script)));
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

std::string starter_text(const FolderInfo& facts) {
  std::string text = "# A stoker job. List of all keys: stoker check --keys\n";
  text += format("name: {}\n\n", config::yaml_scalar(facts.name));
  text += run_section(facts);
  if (facts.dataset) {
    text += "\n" + data_lines(*facts.dataset);
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
