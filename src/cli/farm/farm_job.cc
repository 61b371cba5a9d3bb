// `stoker farm TASKS --job JOB`: docs/commands/farm.md
#include <filesystem>
#include <unistd.h>

#include "base/enum_names.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "cli/farm/farm_request.h"
#include "cli/run_request.h"
#include "cli/site/sites.h"
#include "launch/start/container.h"
#include "launch/start/environment.h"
#include "launch/start/shell_environment.h"
#include "rank/environment.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

constexpr Duration kModulesTimeout = std::chrono::minutes(2);

void set_if_empty(std::string& value, const std::optional<std::string>& from) {
  if (value.empty()) value = from.value_or("");
}

// The folder from which the tasks of this node read a dataset. It stays in the cache until this process ends.
Result<std::string> place_on_node(const job::DataSource& source, const Environment& variables, Output& out) {
  if (source.place == job::DataPlace::shared) return source.source.string();
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  Command command;
  command.argv = {program.string(),        "cache", "stage", source.source.string(), "--json", "--lease",
                  format("{}", ::getpid())};
  if (source.split) command.argv.insert(command.argv.end(), {"--split", *source.split});
  command.environment = variables;
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::never()));
  const auto json = parse_json<nlohmann::ordered_json>(done.out);
  if (done.exit.ok() && json.is_object() && json.contains("folder") && json["folder"].is_string())
    return json["folder"].get<std::string>();
  std::string reason = to_text(done.exit);
  if (json.is_object() && json.contains("error") && json["error"].contains("message"))
    reason = json["error"]["message"].get<std::string>();
  out.note("{}: read where it is, because it was not copied to this node: {}", source.source,
           printable(reason));
  return source.source.string();
}

// What the command line leaves open.
void apply_resources(const job::Job& job, FarmRequest& o, FarmNumbers& n) {
  const job::Resources& resources = job.resources;
  if (!n.time) n.time = resources.time;
  if (!n.nodes) n.nodes = resources.nodes;
  if (n.cpus_per_node == 0)
    n.cpus_per_node =
        static_cast<std::int64_t>(resources.cpus_per_rank.value_or(0)) * resources.ranks_per_node;
  if (n.gpus_per_node == 0) n.gpus_per_node = resources.gpus_per_node();
  farm::AllocationRequest& allocation = o.allocation;
  if (!allocation.memory_per_node) allocation.memory_per_node = resources.memory_per_node;
  set_if_empty(allocation.account, job.slurm.account);
  set_if_empty(allocation.partition, job.slurm.partition);
  set_if_empty(allocation.qos, job.slurm.qos);
  set_if_empty(allocation.reservation, job.slurm.reservation);
  allocation.extra.insert(allocation.extra.begin(), job.slurm.extra.begin(), job.slurm.extra.end());
}

Status check_keys(const job::Job& job) {
  const std::pair<std::string_view, bool> unusable[] = {
      {"array.over", job.array.is_enabled()},  {"chain.until", job.chain.is_enabled()},
      {"after", !job.after.empty()},           {"stage.unpack", !job.stage.unpack.empty()},
      {"stage.copy", !job.stage.copy.empty()}, {"stage.back", !job.stage.back.empty()},
      {"code.snapshot", job.code.snapshot}};
  for (const auto& [key, is_set] : unusable) {
    if (is_set) return invalid("{}: not supported in a farm ({})", key, job.origins.where(key));
  }
  for (const auto& [name, source] : job.data) {
    const std::string key = format("data.{}.place", name);
    if (source.place == job::DataPlace::memory)
      return invalid("{}: memory: a farm copies datasets only to the disk of a node ({})", key,
                     job.origins.where(key))
          .cure("--set {}=local", key);
    if (source.place != job::DataPlace::shared && job.environment.container)
      return invalid("{}: {}: the tasks of a farm run in a container, without the disk of the node ({})", key,
                     stoker::to_text(source.place), job.origins.where(key))
          .cure("--set {}=shared", key);
  }
  if (launch::has_requirements_file(job.environment)) {
    const std::string file = shell_quote(job.environment.venv->string());
    return invalid("environment.venv: {} is no virtual environment, which a farm needs ({})",
                   job.environment.venv->string(), job.origins.where("environment.venv"))
        .cure("python3 -m venv .venv && .venv/bin/pip install -r {}", file);
  }
  return {};
}

}  // namespace

Status read_farm_job(FarmRequest& o, FarmNumbers& n) {
  STOKER_ASSIGN_OR_RETURN(request, request_of({.job = o.job_file, .set = o.set}, "farm", {}));
  job::Job& job = request.job;
  STOKER_RETURN_IF_ERROR(check_keys(job));
  // Tasks begin in the folder of the farm, and have no run.
  std::error_code error;
  job.working_directory = std::filesystem::current_path(error);
  if (error) return posix_error("current folder", error.value());
  job.record.directory = job.working_directory;
  job.checkpoint.directory.reset();
  STOKER_RETURN_IF_ERROR(launch::check_paths(job));
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  if (!allocation) apply_resources(job, o, n);
  o.job = std::move(job);
  return {};
}

Status place_data(const job::Job& job, Environment& variables, Output& out) {
  for (const auto& [name, source] : job.data) {
    STOKER_ASSIGN_OR_RETURN(folder, place_on_node(source, variables, out));
    set_variable(variables, rank::data_variable(name), folder);
  }
  return {};
}

Result<TaskEnvironment> task_environment(const std::optional<job::Job>& job, Output& out) {
  TaskEnvironment result{.variables = current_environment(), .wrapper = {}};
  if (!job) return result;
  STOKER_ASSIGN_OR_RETURN(loaded, launch::load_environment(job->environment, std::move(result.variables),
                                                           Deadline::after(kModulesTimeout)));
  for (const std::string& note : loaded.notes) out.note("{}", note);
  result.variables = launch::inherited_environment(*job, std::move(loaded.variables));
  STOKER_RETURN_IF_ERROR(launch::check_container(*job, variable(result.variables, "PATH")));
  if (!job->environment.container) return result;
  const Path& image = *job->environment.container;
  result.wrapper.words = launch::wrap_in_container(*job, {});
  // Of an image in one file this is not known.
  const bool has_bash =
      !folder_exists(image) || path_exists(image / "bin/bash") || path_exists(image / "usr/bin/bash");
  result.wrapper.shell = has_bash ? "bash" : "sh";
  return result;
}

Status check_farm_job(const std::optional<job::Job>& job, Output& out) {
  if (!job) return {};
  STOKER_RETURN_IF_ERROR(check_site_limits(*job, out));
  return task_environment(job, out).status();
}

}  // namespace stoker::cli
