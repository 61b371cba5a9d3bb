#include "rank/plan.h"

#include "net/port.h"

namespace stoker::rank {

Result<Surroundings> look_around() {
  const slurm::Lookup env = slurm::process_environment();
  Surroundings surroundings;
  surroundings.host = net::host_name();
  OK_OR_RETURN(allocation, slurm::current_allocation(env));
  surroundings.allocation = std::move(allocation);
  OK_OR_RETURN(task, slurm::current_task(env));
  surroundings.task = task;
  return surroundings;
}

Result<Plan> make_plan(const job::Job& job, const Surroundings& surroundings) {
  Plan plan;
  plan.nodes = static_cast<int>(job.resources.nodes);
  plan.ranks_per_node = static_cast<int>(job.resources.ranks_per_node);
  plan.cpus_per_rank = static_cast<int>(job.resources.cpus_per_rank.value_or(0));
  if (plan.world_size().value < 1) {
    return invalid("resources: {} nodes x {} ranks_per_node is no rank at all", plan.nodes,
                   plan.ranks_per_node);
  }
  // Inside salloc the shell itself is a step of one task: only more than one means that srun started us N
  // times.
  if (surroundings.task && surroundings.task->world_size.value > 1) {
    return invalid("run: srun started it {} times, each would be a run of its own (SLURM_STEP_NUM_TASKS)",
                   surroundings.task->world_size.value)
        .cure("stoker run JOB without srun: it starts one rank per task itself");
  }
  const bool in_slurm = surroundings.allocation.has_value();
  const int available = in_slurm ? static_cast<int>(surroundings.allocation->nodes.size()) : 1;
  if (plan.nodes > available) {
    return invalid("resources.nodes: {} asked for, {} here ({})", plan.nodes, available,
                   in_slurm ? format("Slurm job {}", surroundings.allocation->job_id) : "no Slurm allocation")
        .cure("stoker run --set resources.nodes={}", available);
  }
  if (in_slurm) {
    plan.scheduler_job = surroundings.allocation->job_id;
    plan.end_time = surroundings.allocation->end_time;
    if (plan.cpus_per_rank == 0) plan.cpus_per_rank = surroundings.allocation->cpus_per_task;
  }
  if (in_slurm && job.launcher == job::Launcher::srun) {
    plan.start = Start::srun;
    plan.hosts.assign(surroundings.allocation->nodes.begin(),
                      surroundings.allocation->nodes.begin() + plan.nodes);
    return plan;
  }
  if (plan.nodes > 1) {
    return invalid("resources.nodes: {} asked for, but launcher: single starts ranks on this node only",
                   plan.nodes)
        .cure("stoker run --set launcher=srun");
  }
  plan.hosts = {surroundings.host};
  return plan;
}

std::string to_text(const Place& place) {
  return format("{}/{}/{}/{}/{}", place.rank.value, place.world_size.value, place.local_rank,
                place.local_world_size, place.node);
}

Result<Place> parse_place(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  std::int64_t n[5] = {};
  bool is_place = parts.size() == 5;
  for (std::size_t i = 0; is_place && i < 5; ++i) {
    is_place = parse_number(parts[i], &n[i]) && n[i] >= 0 && n[i] <= 1'000'000;
  }
  if (!is_place || n[0] >= n[1] || n[2] >= n[3]) {
    return invalid("STOKER_PLACE: '{}' is not rank/size/local rank/local size/node", printable(text));
  }
  return Place{Rank(static_cast<int>(n[0])), WorldSize(static_cast<int>(n[1])), static_cast<int>(n[2]),
               static_cast<int>(n[3]), static_cast<int>(n[4])};
}

}  // namespace stoker::rank
