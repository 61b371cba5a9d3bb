#include "job/read_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "config/layers.h"
#include "config/yaml.h"
#include "config/yaml_text.h"
#include "job/check.h"
#include "job/fields.h"
#include "job/job.h"
#include "job/settings.h"
#include "job/tasks.h"

namespace stoker::job {
namespace {

using config::EffectiveConfig;
using config::ErrorList;
using config::Layer;

// Fills members from resolved settings. A setting with an error keeps its initial value; the error was
// already reported.
class JobReader {
 public:
  JobReader(const EffectiveConfig& effective, Path file_folder, Path current, ErrorList& errors)
      : effective_(effective),
        file_folder_(std::move(file_folder)),
        current_(std::move(current)),
        errors_(errors) {}

  template <typename T>
  void operator()(std::string_view key, T& field) {
    if constexpr (requires { field.has_value(); }) {
      if (effective_.entries().contains(key)) (*this)(key, field.emplace());
    } else {
      set(key, field);
    }
  }

 private:
  template <typename T>
  void set(std::string_view key, T& field) {
    if constexpr (std::is_enum_v<T>) {
      if (const auto* word = effective_.find<std::string>(key)) field = enum_of<T>(*word);
    } else if (const T* value = effective_.find<T>(key)) {
      field = *value;
    }
  }
  void set(std::string_view key, std::uint32_t& field) {
    if (const auto* value = effective_.find<std::int64_t>(key)) field = static_cast<std::uint32_t>(*value);
  }
  void set(std::string_view key, std::uint64_t& field) {
    if (const auto* value = effective_.find<std::int64_t>(key)) field = static_cast<std::uint64_t>(*value);
  }
  void set(std::string_view key, SaveInterval& field) {
    const auto* period = effective_.find<config::Period>(key);
    if (!period) return;
    field = {};
    field.is_automatic = period->unit == "auto";
    if (field.is_automatic) return;
    (period->unit == "steps" ? field.steps : field.epochs) = static_cast<std::uint64_t>(period->count);
    field.time = period->time;
  }
  void set(std::string_view key, Path& field) {
    const auto* text = effective_.find<std::string>(key);
    if (!text) return;
    const config::Origin origin = effective_.origin(key);
    if (text->starts_with('~')) {
      return errors_.add(origin, format("{}: '~' is not expanded here; write the path in full", key));
    }
    const bool is_of_file = origin.layer() == Layer::file;
    field = ((is_of_file ? file_folder_ : current_) / *text).lexically_normal();
    if (config::find_bad_text(field.string())) {
      errors_.add(origin, format("{}: the path '{}' is not valid UTF-8", key, printable(field.string())));
    }
  }

  // Both enumerators and names are few; the setting's choices guarantee a match.
  template <typename Enum>
  static Enum enum_of(std::string_view word) {
    for (int i = 0; i < 32; ++i) {
      if (to_text(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
    }
    return Enum{};
  }

  const EffectiveConfig& effective_;
  Path file_folder_;
  Path current_;
  ErrorList& errors_;
};

void read_command(const EffectiveConfig& effective, Job& job) {
  if (const auto* words = effective.find<std::vector<std::string>>("run")) {
    job.command = RunCommand{.arguments = *words, .is_shell = false};
  } else if (const auto* text = effective.find<std::string>("run.shell")) {
    job.command = RunCommand{.arguments = {"/bin/sh", "-c", *text}, .is_shell = true};
  }
}

void read_named(const EffectiveConfig& effective, JobReader& read, Job& job) {
  for (const std::string& name : effective.names("params")) read(format("params.{}", name), job.params[name]);
  read("environment.modules", job.environment.modules);
  read("environment.conda", job.environment.conda);
  read("environment.venv", job.environment.venv);
  read("environment.container", job.environment.container);
  read("environment.wheelhouse", job.environment.wheelhouse);
  for (const std::string& name : effective.names("environment.variables")) {
    read(format("environment.variables.{}", name), job.environment.variables[name]);
  }
  for (const std::string& name : effective.names("data")) {
    read(format("data.{}.source", name), job.data[name].source);
    read(format("data.{}.split", name), job.data[name].split);
  }
}

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
  JobReader read(effective, folder, current, errors);
  job.name = default_name(folder);
  job.working_directory = folder;
  read("name", job.name);
  read("working_directory", job.working_directory);
  read_command(effective, job);
  if (effective.has_group("train")) visit_train(read, job.train.emplace());
  read_named(effective, read, job);
  visit_job(read, job);
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
    JobReader(effective, input.folder, options.current_directory, of_path)("array.over", over);
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
