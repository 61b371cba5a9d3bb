#include "slurm/allocation.h"

#include <cstdlib>

#include "slurm/node_list.h"

namespace stoker::slurm {
namespace {

// The number in `name`, `unset` if the variable is missing, or an error if it is not a number in [least,
// most].
Result<int> number(const Lookup& env, std::string_view name, int least, int unset) {
  const std::optional<std::string> text = env(name);
  if (!text) return unset;
  std::int64_t value = 0;
  if (!parse_number(*text, &value) || value < least || value > 1'000'000'000) {
    return invalid("{}: '{}' is not a number of at least {} (set by Slurm?)", name, printable(*text), least);
  }
  return static_cast<int>(value);
}

Result<std::vector<int>> per_node(const Lookup& env, std::string_view name) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::vector<int>{};
  STOKER_ASSIGN_OR_RETURN(counts, expand_per_node(*text));
  return std::move(counts);
}

std::string job_id(const Lookup& env, const std::string& raw) {
  // An array task is addressed as <array job>_<task>: its raw id changes when the array is requeued.
  const auto array = env("SLURM_ARRAY_JOB_ID");
  const auto task = env("SLURM_ARRAY_TASK_ID");
  return array && task ? *array + "_" + *task : raw;
}

}  // namespace

Lookup process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<std::optional<Allocation>> current_allocation(const Lookup& env) {
  const std::optional<std::string> raw_id = env("SLURM_JOB_ID");
  if (!raw_id || raw_id->empty()) return std::optional<Allocation>();
  STOKER_ASSIGN_OR_RETURN(id, number(env, "SLURM_JOB_ID", 1, 0));
  Allocation allocation;
  allocation.job_id = job_id(env, std::to_string(id));
  STOKER_ASSIGN_OR_RETURN(nodes, expand_node_list(env("SLURM_JOB_NODELIST").value_or("")));
  if (nodes.empty()) return invalid("SLURM_JOB_NODELIST: no nodes (job {})", allocation.job_id);
  allocation.nodes = std::move(nodes);
  STOKER_ASSIGN_OR_RETURN(tasks, per_node(env, "SLURM_TASKS_PER_NODE"));
  allocation.tasks_per_node = std::move(tasks);
  STOKER_ASSIGN_OR_RETURN(cpus, number(env, "SLURM_CPUS_PER_TASK", 1, 0));
  allocation.cpus_per_task = cpus;
  STOKER_ASSIGN_OR_RETURN(restarts, number(env, "SLURM_RESTART_COUNT", 0, 0));
  allocation.restart_count = restarts;
  if (const auto end = env("SLURM_JOB_END_TIME")) {
    double seconds = 0;
    if (!parse_number(*end, &seconds))
      return invalid("SLURM_JOB_END_TIME: '{}' is not a time", printable(*end));
    allocation.end_time = seconds;
  }
  if (const auto part = env(kStepNodesVariable); part && !part->empty()) {
    const std::vector<std::string> all = std::exchange(allocation.nodes, {});
    for (const std::string_view node : split(*part, ',')) {
      if (std::find(all.begin(), all.end(), node) == all.end())
        return invalid("{}: '{}' is no node of job {}", kStepNodesVariable, printable(node),
                       allocation.job_id);
      allocation.nodes.emplace_back(node);
    }
    allocation.tasks_per_node.clear();
    allocation.cpus_per_task = 0;
    allocation.is_part = true;
  }
  return std::optional<Allocation>(std::move(allocation));
}

Result<std::optional<Task>> current_task(const Lookup& env) {
  // A batch script has SLURM_PROCID=0 and the job's SLURM_NTASKS, but is not a task of a step.
  const bool is_in_step = env("SLURM_STEP_NUM_TASKS") || env("SLURM_STEP_ID");
  if (!env("SLURM_PROCID") || !is_in_step) return std::optional<Task>();
  STOKER_ASSIGN_OR_RETURN(rank, number(env, "SLURM_PROCID", 0, 0));
  STOKER_ASSIGN_OR_RETURN(local_rank, number(env, "SLURM_LOCALID", 0, 0));
  STOKER_ASSIGN_OR_RETURN(node, number(env, "SLURM_NODEID", 0, 0));
  const std::string_view size_name = env("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  STOKER_ASSIGN_OR_RETURN(size, number(env, size_name, 1, 1));
  if (rank >= size) return invalid("SLURM_PROCID: {} is not below {} ({})", rank, size, size_name);
  STOKER_ASSIGN_OR_RETURN(counts, per_node(env, "SLURM_STEP_TASKS_PER_NODE"));
  int local_size = size;
  if (!counts.empty()) {
    if (static_cast<std::size_t>(node) >= counts.size()) {
      return invalid("SLURM_NODEID: {} is not below {} (SLURM_STEP_TASKS_PER_NODE)", node, counts.size());
    }
    local_size = counts[static_cast<std::size_t>(node)];
  }
  if (local_rank >= local_size) {
    return invalid("SLURM_LOCALID: {} is not below {} (SLURM_STEP_TASKS_PER_NODE)", local_rank, local_size);
  }
  return std::optional<Task>(Task{Rank(rank), WorldSize(size), local_rank, local_size, node});
}

std::vector<std::string> srun_arguments(const StepRequest& request) {
  std::vector<std::string> argv = {"srun", format("--nodes={}", request.nodes),
                                   format("--ntasks={}", request.tasks.value)};
  const bool is_listed = request.tasks_per_node == 0;
  if (!is_listed) argv.push_back(format("--ntasks-per-node={}", request.tasks_per_node));
  if (request.cpus_per_task > 0) argv.push_back(format("--cpus-per-task={}", request.cpus_per_task));
  if (!request.node_list.empty()) argv.push_back(format("--nodelist={}", request.node_list));
  if (!request.node_list.empty() && !request.overlaps) argv.emplace_back("--exact");
  if (request.uses_whole_node || request.overlaps) argv.emplace_back("--cpu-bind=none");
  if (request.overlaps) argv.insert(argv.end(), {"--overlap", "--mem=0", "--gres=none", "--quiet"});
  argv.emplace_back(is_listed ? "--distribution=arbitrary" : "--distribution=block");
  argv.insert(argv.end(), {"--kill-on-bad-exit=0", "--wait=0", "--unbuffered"});
  if (!request.overlaps) argv.emplace_back("--input=none");
  argv.emplace_back("--export=ALL");
  argv.insert(argv.end(), request.command.begin(), request.command.end());
  return argv;
}

std::optional<int> cpus_on_node(const Lookup& env) {
  const std::optional<std::string> text = env("SLURM_CPUS_ON_NODE");
  std::int64_t cpus = 0;
  if (!text || !env("SLURM_JOB_ID") || !parse_number(*text, &cpus) || cpus < 1 || cpus > 1'000'000)
    return std::nullopt;
  return static_cast<int>(cpus);
}

std::vector<std::string> variables_to_drop() {
  return {"SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_CPU_BIND_TYPE",  "SLURM_CPU_BIND_VERBOSE",
          "SLURM_MEM_BIND", "SLURM_DISTRIBUTION",  "SLURM_NTASKS_PER_NODE"};
}

}  // namespace stoker::slurm
