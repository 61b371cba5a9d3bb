#include "launch/start/environment.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/process.h"
#include "rank/environment.h"
#include "stage/copy.h"

namespace stoker::launch {

Status check_paths(const job::Job& job) {
  if (!folder_exists(job.working_directory))
    return not_found("working_directory: {}: no such folder", job.working_directory);
  const std::optional<Path>& venv = job.environment.venv;
  if (venv && !has_requirements_file(job.environment) && !path_exists(*venv / "bin/python")) {
    return not_found("environment.venv: {}: no virtual environment (no bin/python)", *venv)
        .cure("python3 -m venv {}", shell_quote(venv->string()));
  }
  if (job.environment.wheelhouse && !folder_exists(*job.environment.wheelhouse)) {
    return not_found("environment.wheelhouse: {}: no such folder", *job.environment.wheelhouse)
        .cure("pip download -d {} -r {}", shell_quote(job.environment.wheelhouse->string()),
              shell_quote(venv->string()));
  }
  for (const auto& [key, paths] :
       {std::pair{"stage.unpack", &job.stage.unpack}, std::pair{"stage.copy", &job.stage.copy}}) {
    for (const std::string& path : *paths) {
      // A predecessor may still create it.
      if (job.after.empty() && !path_exists(path))
        return not_found("{}: {}: no such file or folder", key, printable(path));
    }
  }
  for (const auto& [name, source] : job.data) {
    if (folder_exists(source.source)) continue;
    return not_found("data.{}.source: {}: no such folder", name, source.source)
        .cure("stoker data pack FOLDER {}", shell_quote(source.source.string()));
  }
  return {};
}

bool has_requirements_file(const job::Environment& environment) {
  return environment.venv && path_exists(*environment.venv) && !folder_exists(*environment.venv);
}

std::string staged_venv(const job::Job& job) {
  if (!job.environment.venv || has_requirements_file(job.environment)) return "";
  for (const std::string& source : job.stage.copy) {
    const Path copied = stage::without_slash(source);
    const Path below = stage::without_slash(*job.environment.venv).lexically_relative(copied);
    if (!below.empty() && *below.begin() != "..")
      return stage::without_slash(copied.filename() / below).string();
  }
  return "";
}

std::vector<std::string> wrap_in_node_venv(const job::Environment& environment, const Path& stoker,
                                           std::vector<std::string> command) {
  if (!has_requirements_file(environment)) return command;
  std::vector<std::string> words = {stoker.string(), "environment", "run", "--requirements",
                                    environment.venv->string()};
  if (environment.wheelhouse) words.insert(words.end(), {"--wheelhouse", environment.wheelhouse->string()});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Environment inherited_environment(const job::Job& job, Environment base) {
  // A MASTER_PORT set by the user applies, one inherited from an outer run does not.
  if (!variable(base, "RANK").empty()) unset_variable(base, "MASTER_PORT");
  for (std::string_view name :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR"}) {
    unset_variable(base, name);
  }
  // A run inside another run must not write into it, nor continue its run of W&B. STOKER_SET_* overrides are
  // already in the effective job.
  const std::string outer = variable(base, "STOKER_RUN_ID");
  if (!outer.empty() && variable(base, "WANDB_RUN_ID").starts_with(outer)) {
    for (std::string_view name : {"WANDB_RUN_ID", "WANDB_RESUME", "WANDB_DIR"}) unset_variable(base, name);
  }
  if (!outer.empty() && variable(base, "MLFLOW_RUN_CONTEXT").find(outer) != std::string::npos)
    unset_variable(base, "MLFLOW_RUN_CONTEXT");
  std::erase_if(base, [](const auto& entry) {
    return entry.first.starts_with("STOKER_") && entry.first != "STOKER_CACHE";  // of the site
  });
  // Python buffers output to a pipe: the log would not grow for minutes.
  if (variable(base, "PYTHONUNBUFFERED").empty()) set_variable(base, "PYTHONUNBUFFERED", "1");
  // Ranks need no windows, and opening one fails on nodes without a display.
  if (variable(base, "MPLBACKEND").empty()) set_variable(base, "MPLBACKEND", "Agg");
  // Enables large pages on request: the first step of a training touches tens of thousands of small ones.
  if (job.train && variable(base, "GLIBC_TUNABLES").empty())
    set_variable(base, "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  if (job.environment.venv && !has_requirements_file(job.environment)) {
    const std::string path = variable(base, "PATH");
    set_variable(base, "PATH", (*job.environment.venv / "bin").string() + (path.empty() ? "" : ":" + path));
    set_variable(base, "VIRTUAL_ENV", job.environment.venv->string());
    unset_variable(base, "PYTHONHOME");
  }
  for (const auto& [name, value] : job.environment.variables) set_variable(base, name, value);
  return base;
}

std::string metrics_from(const job::Job& job) {
  if (job.train) return "none";
  if (job.record.metrics_regex) return "regex:" + *job.record.metrics_regex;
  return std::string(to_text(job.record.metrics_from.value_or(job::MetricsFrom::automatic)));
}

Environment run_environment(Environment base, const RunContext& part) {
  const auto absolute = [](const Path& path) {
    return path.empty() ? "" : std::filesystem::absolute(path).string();
  };
  set_variable(base, "STOKER_RUN_ID", part.folder.id());
  set_variable(base, "STOKER_RUN_DIR", absolute(part.folder.folder()));
  set_variable(base, "STOKER_ATTEMPT_DIR", absolute(part.attempt.folder()));
  set_variable(base, "STOKER_JOB", absolute(part.attempt.job()));
  set_variable(base, "STOKER_TENSORBOARD_DIR", absolute(part.folder.folder() / "tensorboard"));
  set_variable(base, "STOKER_CHECKPOINT_DIR", absolute(part.checkpoints));
  set_variable(base, "STOKER_RESUME", absolute(part.resume));
  set_variable(base, "STOKER_DEADLINE", part.deadline ? format("{:.0f}", *part.deadline) : "");
  for (const auto& [name, source] : part.job.data)
    set_variable(base, rank::data_variable(name), source.source.string());
  return base;
}

}  // namespace stoker::launch
