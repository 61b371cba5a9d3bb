#include "rank/plan.h"

#include <algorithm>
#include <numeric>

#include "base/language/counted.h"

namespace stoker::rank {

namespace {

// Evenly; the first nodes get one more.
std::vector<int> spread(int ranks, int nodes) {
  std::vector<int> counts(static_cast<std::size_t>(nodes), ranks / nodes);
  for (int node = 0; node < ranks % nodes; ++node) ++counts[static_cast<std::size_t>(node)];
  return counts;
}

// If an allocation has exactly this many tasks, Slurm reserved the cores for them on these nodes.
std::vector<int> counts_of(const job::Resources& resources,
                           const std::optional<slurm::Allocation>& allocation) {
  const int nodes = static_cast<int>(resources.nodes);
  const int ranks = static_cast<int>(resources.world_size());
  if (resources.ranks && allocation) {
    const std::vector<int>& tasks = allocation->tasks_per_node;
    const bool is_for_us = static_cast<int>(tasks.size()) == nodes &&
                           allocation->nodes.size() == tasks.size() &&
                           std::accumulate(tasks.begin(), tasks.end(), 0) == ranks;
    if (is_for_us) return tasks;
  }
  return spread(ranks, nodes);
}

}  // namespace

WorldSize Plan::world_size() const {
  return WorldSize(std::accumulate(ranks_of_node.begin(), ranks_of_node.end(), 0));
}

int Plan::ranks_per_node() const {
  return ranks_of_node.empty() ? 0 : *std::max_element(ranks_of_node.begin(), ranks_of_node.end());
}

bool Plan::is_even() const {
  return std::all_of(ranks_of_node.begin(), ranks_of_node.end(),
                     [&](int n) { return n == ranks_of_node[0]; });
}

RankPlacement Plan::placement_of(Rank rank) const {
  int before = 0;
  for (std::size_t node = 0; node < ranks_of_node.size(); ++node) {
    const int count = ranks_of_node[node];
    if (rank.value < before + count)
      return {rank, world_size(), rank.value - before, count, static_cast<int>(node)};
    before += count;
  }
  return {rank, world_size()};
}

Result<LaunchContext> detect_launch_context() {
  const slurm::Lookup env = slurm::process_environment();
  LaunchContext context;
  context.host = net::host_name();
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(env));
  context.allocation = std::move(allocation);
  STOKER_ASSIGN_OR_RETURN(task, slurm::current_task(env));
  context.task = task;
  return context;
}

Result<Plan> make_plan(const job::Job& job, const LaunchContext& context) {
  Plan plan;
  plan.nodes = static_cast<int>(job.resources.nodes);
  plan.has_torchrun = job.launcher == job::Launcher::torchrun;
  plan.gpus_per_rank = static_cast<int>(job.resources.gpus_per_rank);
  plan.ranks_per_gpu = static_cast<int>(std::max(1u, job.resources.ranks_per_gpu));
  plan.cpus_per_rank = static_cast<int>(job.resources.cpus_per_rank.value_or(0));
  if (job.resources.world_size() < 1) {
    return invalid("resources: {} x {} ranks_per_node gives no ranks", counted(plan.nodes, "node"),
                   job.resources.ranks_per_node);
  }
  // Inside salloc, the shell itself is a step with one task: only more than one means that srun started this
  // N times.
  if (context.task && context.task->world_size.value > 1) {
    return invalid("run: srun started it {} times, and each would be a separate run (SLURM_STEP_NUM_TASKS)",
                   context.task->world_size.value)
        .cure("stoker run JOB      (without srun; it starts one rank per task)");
  }
  const bool in_slurm = context.allocation.has_value();
  const int available = in_slurm ? static_cast<int>(context.allocation->nodes.size()) : 1;
  if (plan.nodes > available) {
    return invalid("resources.nodes: {} requested, {} available ({})", plan.nodes, available,
                   in_slurm ? format("Slurm job {}", context.allocation->job_id) : "no Slurm allocation")
        .cure("stoker run --set resources.nodes={}", available);
  }
  if (in_slurm) {
    plan.scheduler_job = context.allocation->job_id;
    plan.is_part_of_job = context.allocation->is_part;
    plan.end_time = context.allocation->end_time;
    // A task is a rank, except with torchrun.
    if (plan.cpus_per_rank == 0 && !plan.has_torchrun) plan.cpus_per_rank = context.allocation->cpus_per_task;
  }
  plan.ranks_of_node = counts_of(job.resources, context.allocation);
  if (in_slurm && job.launcher != job::Launcher::single) {
    plan.start = StartMethod::srun;
    plan.hosts.assign(context.allocation->nodes.begin(), context.allocation->nodes.begin() + plan.nodes);
    return plan;
  }
  if (plan.nodes > 1) {
    return invalid("resources.nodes: {} requested, but launcher: single starts ranks on this node only",
                   plan.nodes)
        .cure("stoker run --set launcher=srun");
  }
  plan.hosts = {context.host};
  return plan;
}

std::string to_text(const RankPlacement& place) {
  return format("{}/{}/{}/{}/{}", place.rank.value, place.world_size.value, place.local_rank,
                place.local_world_size, place.node);
}

Result<RankPlacement> parse_placement(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  std::int64_t n[5] = {};
  bool is_place = parts.size() == 5;
  for (std::size_t i = 0; is_place && i < 5; ++i) {
    is_place = parse_number(parts[i], &n[i]) && n[i] >= 0 && n[i] <= 1'000'000;
  }
  if (!is_place || n[0] >= n[1] || n[2] >= n[3]) {
    return invalid("STOKER_PLACE: '{}' is not rank/size/local rank/local size/node", printable(text));
  }
  return RankPlacement{Rank(static_cast<int>(n[0])), WorldSize(static_cast<int>(n[1])),
                       static_cast<int>(n[2]), static_cast<int>(n[3]), static_cast<int>(n[4])};
}

}  // namespace stoker::rank
