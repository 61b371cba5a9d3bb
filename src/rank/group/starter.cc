#include "rank/group/starter.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "rank/environment.h"
#include "slurm/allocation.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

Environment starter_environment(const GroupOptions& options, const GroupAddresses& addresses) {
  const Plan& plan = options.plan;
  Environment base = options.environment;
  set_variable(base, kWorldVariable, addresses.nodes.empty() ? addresses.ranks : addresses.nodes);
  if (!addresses.nodes.empty()) set_variable(base, kRanksWorldVariable, addresses.ranks);
  set_variable(base, kStartVariable, std::to_string(std::max<std::int64_t>(1, options.timeouts.start / 1s)));
  set_variable(base, kCpusVariable, std::to_string(plan.cpus_per_rank));
  std::vector<std::string> counts;
  for (int count : plan.ranks_of_node) counts.push_back(std::to_string(count));
  set_variable(base, kNodesVariable, join(counts, ","));
  if (plan.gpus_per_rank > 0) set_variable(base, kOwnGpusVariable, std::to_string(plan.gpus_per_rank));
  if (plan.ranks_per_gpu > 1) set_variable(base, kSharedGpuVariable, std::to_string(plan.ranks_per_gpu));
  if (plan.ports) set_variable(base, kPortsVariable, to_text(*plan.ports));
  return base;
}

Result<Starter> start_one(const GroupOptions& options, std::vector<std::string> argv, Environment environment,
                          std::optional<int> rank) {
  STOKER_ASSIGN_OR_RETURN(out, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(err, Pipe::create());
  Command command;
  command.argv = std::move(argv);
  command.environment = std::move(environment);
  command.directory = options.working_directory;
  command.stdout_fd = out.write.get();
  command.stderr_fd = err.write.get();
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  const std::string prefix = format("[{}] ", rank.value_or(0));
  return Starter{std::move(child),    rank, std::move(out.read), std::move(err.read), LinePrefixer(prefix),
                 LinePrefixer(prefix)};
}

// One srun for all ranks, or for all nodes of torchrun.
Result<Starter> start_srun(const GroupOptions& options, std::vector<std::string> argv,
                           Environment environment) {
  const Plan& plan = options.plan;
  for (const std::string& name : slurm::variables_to_drop()) unset_variable(environment, name);
  slurm::StepRequest request{plan.world_size(), plan.nodes, plan.ranks_per_node(), plan.cpus_per_rank, {}};
  if (plan.has_torchrun) {
    // One task per node with all resources of the job there, shared by its ranks.
    request = {WorldSize(plan.nodes), plan.nodes, 1, 0, {}, true};
    unset_variable(environment, "SLURM_CPUS_PER_TASK");
    unset_variable(environment, "SRUN_CPUS_PER_TASK");
  } else if (plan.cpus_per_rank > 0) {
    set_variable(environment, "SRUN_CPUS_PER_TASK", std::to_string(plan.cpus_per_rank));
  }
  if (plan.is_part_of_job) {
    request.node_list = join(plan.hosts, ",");
    if (plan.has_torchrun) {
      request.cpus_per_task = std::max(1, plan.cpus_per_rank) * plan.ranks_per_node();
      request.uses_whole_node = false;
    }
  }
  if (!plan.has_torchrun && !plan.is_even()) {
    // srun would distribute the ranks by the free resources of each node: give it an explicit list.
    std::string lines;
    for (int r = 0; r < plan.world_size().value; ++r)
      lines += plan.hosts[static_cast<std::size_t>(plan.placement_of(Rank(r)).node)] + "\n";
    const Path file = std::filesystem::absolute(options.attempt.hosts());
    STOKER_RETURN_IF_ERROR(write_file(file, lines));
    set_variable(environment, "SLURM_HOSTFILE", file.string());
    request.tasks_per_node = 0;
  }
  request.command = std::move(argv);
  return start_one(options, slurm::srun_arguments(request), std::move(environment), std::nullopt);
}

}  // namespace

Status start_ranks(const GroupOptions& options, const GroupAddresses& addresses,
                   std::list<Starter>* starters) {
  const Environment base = starter_environment(options, addresses);
  std::vector<std::string> argv = {options.stoker.string(), "rank", "--"};
  argv.insert(argv.end(), options.command.begin(), options.command.end());
  if (options.plan.start == StartMethod::srun) {
    STOKER_ASSIGN_OR_RETURN(srun, start_srun(options, std::move(argv), base));
    starters->push_back(std::move(srun));
    return {};
  }
  const bool is_node = options.plan.has_torchrun;
  const WorldSize size = is_node ? WorldSize(1) : options.plan.world_size();
  for (int r = 0; r < size.value; ++r) {
    Environment environment = base;
    set_variable(
        environment, kPlaceVariable,
        to_text(is_node ? RankPlacement{Rank(0), size} : RankPlacement{Rank(r), size, r, size.value, 0}));
    STOKER_ASSIGN_OR_RETURN(
        starter, start_one(options, argv, std::move(environment), is_node ? std::nullopt : std::optional(r)));
    starters->push_back(std::move(starter));
  }
  return {};
}

pid_t start_background(const std::function<void()>& task) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  (void)!::nice(10);
  task();
  ::_exit(0);
}

}  // namespace stoker::rank
