#include "rank/environment.h"

#include <algorithm>
#include <sched.h>

#include "base/file.h"
#include "base/json/json.h"
#include "observe/metrics/tracker_files.h"
#include "stoker/time.h"

namespace stoker::rank {
namespace {

// MLflow adds these tags to each run that the program starts: JSON.
constexpr std::string_view kMlflowContext = "MLFLOW_RUN_CONTEXT";

}  // namespace

Environment rank_environment(Environment base, const RankPlacement& place, const Rendezvous& rendezvous,
                             int threads) {
  base = without_torchrun(without_stoker_variables(std::move(base)));
  const auto set = [&](std::string_view name, std::string value) {
    set_variable(base, name, std::move(value));
  };
  set("RANK", std::to_string(place.rank.value));
  set("LOCAL_RANK", std::to_string(place.local_rank));
  set("WORLD_SIZE", std::to_string(place.world_size.value));
  set("LOCAL_WORLD_SIZE", std::to_string(place.local_world_size));
  set("NODE_RANK", std::to_string(place.node));
  set("MASTER_ADDR", rendezvous.address);
  set("MASTER_PORT", std::to_string(rendezvous.port));
  set_threads(base, threads);
  return base;
}

Environment without_stoker_variables(Environment base) {
  for (std::string_view name :
       {kWorldVariable, kPlaceVariable, kRanksWorldVariable, kStartVariable, kCpusVariable, kNodesVariable,
        kOwnGpusVariable, kSharedGpuVariable, kPortsVariable, kPortVariable, kErrorsVariable, kStageVariable,
        kStagedVenvVariable, kMetricsVariable})
    unset_variable(base, name);
  return base;
}

Environment without_torchrun(Environment base) {
  // With torchrun's variables, a script would look for the store of an agent that does not exist.
  std::erase_if(base, [](const auto& entry) {
    return entry.first.starts_with("TORCHELASTIC_") || entry.first == "GROUP_RANK" ||
           entry.first.starts_with("ROLE_") || entry.first.starts_with("GROUP_WORLD_");
  });
  return base;
}

std::string staged_folder(std::string_view folders, int node) {
  if (folders.empty()) return "";
  const auto each = split(folders, '\n');
  return std::string(each[std::min(static_cast<std::size_t>(std::max(0, node)), each.size() - 1)]);
}

std::string data_variable(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return "STOKER_DATA_" + upper;
}

void set_staged_data(Environment& environment, const Path& staged) {
  const auto names = list_directory(staged / kDataFolder);
  for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
    std::error_code error;
    const Path folder = std::filesystem::read_symlink(staged / kDataFolder / (*names)[i], error);
    if (error) continue;
    set_variable(environment, data_variable((*names)[i]), folder.string());
  }
}

void use_staged_venv(Environment& environment, std::vector<std::string>& command, const Path& venv) {
  const std::string old = variable(environment, "VIRTUAL_ENV");
  if (old.empty()) return;
  const auto moved = [&](const std::string& path) {
    return path.starts_with(old + "/") ? venv.string() + path.substr(old.size()) : path;
  };
  for (std::string_view name : {"PATH", "LD_LIBRARY_PATH"}) {
    const std::string paths = variable(environment, name);
    std::vector<std::string> parts;
    for (std::string_view part : split(paths, ':')) parts.push_back(moved(std::string(part)));
    if (!paths.empty()) set_variable(environment, name, join(parts, ":"));
  }
  if (!command.empty()) command.front() = moved(command.front());
  set_variable(environment, "VIRTUAL_ENV", venv.string());
}

void set_threads(Environment& environment, int threads) {
  // PyTorch, MKL, OpenBLAS and numexpr use the first one; the other libraries default to all cores of the
  // machine.
  for (std::string_view name : {"OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
                                "RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "JULIA_NUM_THREADS"}) {
    if (variable(environment, name).empty()) set_variable(environment, name, std::to_string(threads));
  }
}

void set_tracker_variables(Environment& environment, int rank) {
  const std::string run = variable(environment, "STOKER_RUN_ID");
  const auto set = [&](std::string_view name, const std::string& value) {
    const bool is_set = std::any_of(environment.begin(), environment.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (!is_set) environment.emplace_back(name, value);
  };
  if (run.empty()) return;
  const std::string task = variable(environment, "STOKER_TASK");
  const std::string name = !task.empty() ? format("{}-task{}", run, task)
                           : rank == 0   ? run
                                         : format("{}-rank{}", run, rank);
  set("WANDB_RUN_ID", name);
  set("WANDB_RESUME", "allow");
  set("WANDB_DIR", variable(environment, "STOKER_RUN_DIR"));
  set(kMlflowContext, json_text(nlohmann::ordered_json{{std::string(observe::kMlflowTag), name}}));
}

observe::TrackerOptions tracker_options(const Environment& environment, const Path& attempt, int number,
                                        const Path& working_directory) {
  // Of a context with tags of the user, too.
  const auto context = parse_json<nlohmann::json>(variable(environment, kMlflowContext));
  const auto name = context.is_object() ? context.find(std::string(observe::kMlflowTag)) : context.end();
  const bool is_named = context.is_object() && name != context.end() && name->is_string();
  const bool is_first = number == 0 || !variable(environment, "STOKER_TASK").empty();
  return {.attempt = attempt,
          .rank = number,
          .working_directory = working_directory,
          .tensorboard_folder = variable(environment, "STOKER_TENSORBOARD_DIR"),
          .wandb_folder = variable(environment, "WANDB_DIR"),
          .wandb_run = variable(environment, "WANDB_RUN_ID"),
          .mlflow_folder =
              observe::mlflow_store_folder(variable(environment, "MLFLOW_TRACKING_URI"), working_directory),
          .mlflow_name = is_named ? name->get<std::string>() : "",
          .mlflow_run = is_first ? variable(environment, "MLFLOW_RUN_ID") : "",
          .since = unix_seconds(RealClock().wall())};
}

void set_slurm_variables(Environment& environment, const RankPlacement& place,
                         std::string_view ranks_of_node) {
  if (variable(environment, "SLURM_JOB_ID").empty()) return;
  const auto set = [&](std::string_view name, std::string value) {
    set_variable(environment, name, std::move(value));
  };
  set("SLURM_PROCID", std::to_string(place.rank.value));
  set("SLURM_LOCALID", std::to_string(place.local_rank));
  set("SLURM_NODEID", std::to_string(place.node));
  for (std::string_view name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    set(name, std::to_string(place.world_size.value));
  for (std::string_view name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    set(name, std::string(ranks_of_node));
  if (!variable(environment, "SLURM_NTASKS_PER_NODE").empty())
    set("SLURM_NTASKS_PER_NODE", std::to_string(place.local_world_size));
}

int cores_per_rank(int wanted, const RankPlacement& place, std::optional<int> on_node) {
  if (wanted > 0) return wanted;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  const int cores = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
  const int ranks = std::max(1, place.local_world_size);
  if (!on_node) return std::max(1, cores / ranks);
  // A bound task sees only its cores; an unbound one may also see cores of other jobs.
  return std::max(1, std::min(cores, *on_node / ranks));
}

}  // namespace stoker::rank
