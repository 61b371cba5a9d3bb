#include "netcheck/check_plan.h"

#include <unistd.h>

namespace stoker::netcheck {
namespace {

constexpr std::int64_t kMost = 65536;

// The options of srun for a new allocation, from the job.
std::vector<std::string> allocation_options(const job::Job& job) {
  std::vector<std::string> options = {"--job-name=stoker-hello", "--time=10"};
  const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
    if (value) options.push_back(format("--{}={}", name, *value));
  };
  add("partition", job.slurm.partition);
  add("account", job.slurm.account);
  add("qos", job.slurm.qos);
  add("reservation", job.slurm.reservation);
  options.insert(options.end(), job.slurm.extra.begin(), job.slurm.extra.end());
  const std::uint32_t gpus = job.resources.gpus_per_node();
  if (gpus > 0) options.push_back(format("--gpus-per-node={}", gpus));
  return options;
}

}  // namespace

Result<NetworkCheckOptions> plan_network_check(const CheckRequest& request, const rank::LaunchContext& here,
                                               bool has_srun) {
  job::Job job = request.job == nullptr ? job::Job() : *request.job;
  job::Resources& resources = job.resources;
  if (request.job == nullptr) {
    resources.nodes = here.allocation ? static_cast<std::uint32_t>(here.allocation->nodes.size()) : 1;
    // One machine needs two ranks.
    const bool is_one = resources.nodes == 1 && request.nodes.value_or(1) == 1;
    resources.ranks_per_node = is_one ? 2 : 1;
  }
  for (const auto& [value, name] :
       {std::pair(request.nodes, "--nodes"), {request.ranks_per_node, "--ranks-per-node"}}) {
    if (value && (*value < 1 || *value > kMost))
      return invalid("hello: {}: {} (1 to {})", name, *value, kMost);
  }
  if (request.nodes) resources.nodes = static_cast<std::uint32_t>(*request.nodes);
  // The network check needs the same number of ranks on every node, started by srun.
  resources.ranks.reset();
  if (job.launcher == job::Launcher::torchrun) job.launcher = job::Launcher::srun;
  if (request.ranks_per_node) resources.ranks_per_node = static_cast<std::uint32_t>(*request.ranks_per_node);
  NetworkCheckOptions options;
  options.gpus_per_rank = resources.gpus_per_rank;
  const bool needs_nodes = !here.allocation && (resources.nodes > 1 || request.nodes);
  if (needs_nodes && !has_srun && resources.nodes > 1) {
    return invalid("hello: {} nodes requested, but there is no Slurm allocation and no srun", resources.nodes)
        .cure("stoker hello --nodes 1      (or: stoker lab up)");
  }
  if (!needs_nodes || !has_srun) {
    STOKER_ASSIGN_OR_RETURN(plan, rank::make_plan(job, here));
    options.plan = std::move(plan);
    return options;
  }
  options.allocates = true;
  options.srun_options = allocation_options(job);
  options.plan.start = rank::StartMethod::srun;
  options.plan.nodes = static_cast<int>(resources.nodes);
  options.plan.ranks_of_node.assign(resources.nodes, static_cast<int>(resources.ranks_per_node));
  options.plan.cpus_per_rank = static_cast<int>(resources.cpus_per_rank.value_or(0));
  return options;
}

bool is_in_path(std::string_view name, const Environment& environment) {
  const std::string path = variable(environment, "PATH");
  for (std::string_view folder : split(path, ':')) {
    if (!folder.empty() && ::access((Path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace stoker::netcheck
