#include "job/read_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "config/bound_setting.h"
#include "config/layers.h"
#include "config/yaml.h"
#include "config/yaml_text.h"
#include "job/check.h"
#include "job/job.h"
#include "job/settings.h"
#include "job/tasks.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;
using config::Layer;

// Paths in a list are relative to where the list was written.
void make_absolute(const EffectiveConfig& effective, std::string_view key, const Path& folder,
                   const Path& current, std::vector<std::string>& paths) {
  if (paths.empty()) return;
  const Path& base = effective.origin(key).layer() == Layer::file ? folder : current;
  for (std::string& path : paths) path = (base / path).lexically_normal().string();
}

// The folder's name with characters replaced that a run's name must not contain.
std::string default_name(const Path& folder) {
  std::string name = folder.filename().string().substr(0, 64);
  for (char& c : name) {
    if (!is_name_character(c)) c = '-';
  }
  return name.empty() ? "job" : name;
}

Job build_job(const EffectiveConfig& effective, const Path& folder, const Path& current, ErrorList& errors) {
  Job job;
  job.name = default_name(folder);
  job.working_directory = folder;
  if (effective.has_group("train")) job.train.emplace();
  config::read_all(job_settings(), config::SettingReader(effective, folder, current, errors), job);
  make_absolute(effective, "stage.unpack", folder, current, job.stage.unpack);
  make_absolute(effective, "stage.copy", folder, current, job.stage.copy);
  for (const auto& [key, entry] : effective.entries()) {
    if (entry.origin.layer() != Layer::built_in) job.origins.add(key, entry.origin.where());
  }
  return job;
}

}  // namespace

Result<Job> read_job(const TextSource& input, const LoadOptions& options) {
  if (config::find_bad_text(input.folder.string()))
    return invalid("{}: the folder's name is not valid UTF-8", printable(input.folder.string()));
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const bool has_mark = input.text.starts_with(kByteOrderMark);
  const auto source = std::make_shared<const config::Source>(
      Layer::file, input.name, input.text.substr(has_mark ? kByteOrderMark.size() : 0));
  ErrorList of_text;
  const std::optional<config::Node> root = config::parse_yaml(source, of_text);
  if (!root) return of_text.status();
  const auto resolve = [&](std::span<const std::string> task, ErrorList& errors) {
    config::Layers layers(schema(), {{"scratch", (input.folder / "scratch").string()}}, errors);
    layers.add_document({source, *root});
    layers.add_environment(options.environment);
    layers.add_flags(task, "array");
    layers.add_flags(options.set);
    return layers.resolve();
  };
  ErrorList errors = of_text;
  EffectiveConfig effective = resolve(options.task, errors);
  if (effective.find<std::string>("array.over") != nullptr && options.task.empty()) {
    // Its tasks provide values that the other settings may refer to.
    Path over;
    ErrorList of_path;
    config::SettingReader(effective, input.folder, options.current_directory, of_path)("array.over", over);
    const auto tasks = read_tasks(over);
    if (!tasks) {
      errors = of_text;
      errors.add(effective.origin("array.over"), format("array.over: {}", tasks.error().message()));
      return errors.status();
    }
    errors = of_text;
    effective = resolve(tasks->tasks.front().settings, errors);
  }
  if (ErrorList of_both = of_text; !check_run_or_train(effective, of_both)) return of_both.status();
  Job job = build_job(effective, input.folder, options.current_directory, errors);
  complete_and_check(effective, {source, 0}, job, errors);
  if (!errors.empty()) return errors.status();
  return job;
}

Result<Job> load(const Path& file, const LoadOptions& options) {
  Result<std::string> text = config::read_config_file(options.current_directory / file);
  if (!text) {
    if (text.error().code() != Code::not_found) return std::move(text).error();
    return std::move(text).error().cure("stoker init");
  }
  LoadOptions absolute = options;
  if (absolute.current_directory.empty()) {
    std::error_code error;
    absolute.current_directory = std::filesystem::current_path(error);
    if (error) return posix_error("current folder", error.value());
  }
  const Path folder = (absolute.current_directory / file).lexically_normal().parent_path();
  return read_job({.name = printable(file.string()), .text = std::move(*text), .folder = folder}, absolute);
}

}  // namespace stoker::job
