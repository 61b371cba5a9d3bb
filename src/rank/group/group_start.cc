#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "rank/environment.h"
#include "rank/group/rank_group.h"

namespace stoker::rank {

using namespace std::chrono_literals;

Environment RankGroup::environment_of_starters() const {
  const Plan& plan = options_.plan;
  Environment base = options_.environment;
  set_variable(base, kWorldVariable, nodes_ ? nodes_->invitation() : server_.invitation());
  if (nodes_) set_variable(base, kRanksWorldVariable, server_.invitation());
  set_variable(base, kStartVariable, std::to_string(std::max<std::int64_t>(1, options_.timeouts.start / 1s)));
  set_variable(base, kCpusVariable, std::to_string(plan.cpus_per_rank));
  std::vector<std::string> counts;
  for (int count : plan.ranks_of_node) counts.push_back(std::to_string(count));
  set_variable(base, kNodesVariable, join(counts, ","));
  if (plan.ranks_per_gpu > 1) set_variable(base, kSharedGpuVariable, std::to_string(plan.ranks_per_gpu));
  if (plan.ports) set_variable(base, kPortsVariable, to_text(*plan.ports));
  return base;
}

Status RankGroup::start_all() {
  Environment base = environment_of_starters();
  std::vector<std::string> argv = {options_.stoker.string(), "rank", "--"};
  argv.insert(argv.end(), options_.command.begin(), options_.command.end());
  if (options_.plan.start == Start::srun) return start_by_srun(std::move(argv), std::move(base));
  if (!nodes_) return start_each(argv, base);
  set_variable(base, kPlaceVariable, to_text(Place{Rank(0), WorldSize(1)}));
  OK_OR_RETURN(starter, start_one(std::move(argv), std::move(base), std::nullopt));
  starters_.push_back(std::move(starter));
  return {};
}

Status RankGroup::start_by_srun(std::vector<std::string> argv, Environment environment) {
  const Plan& plan = options_.plan;
  for (const std::string& name : slurm::variables_to_drop()) unset_variable(environment, name);
  slurm::StepRequest request{plan.world_size(), plan.nodes, plan.ranks_per_node(), plan.cpus_per_rank, {}};
  if (nodes_) {
    // One task on each node, which may use all that the job has there: its ranks share it.
    request = {WorldSize(plan.nodes), plan.nodes, 1, 0, {}, true};
    unset_variable(environment, "SLURM_CPUS_PER_TASK");
    unset_variable(environment, "SRUN_CPUS_PER_TASK");
  } else if (plan.cpus_per_rank > 0) {
    set_variable(environment, "SRUN_CPUS_PER_TASK", std::to_string(plan.cpus_per_rank));
  }
  if (!nodes_ && !plan.is_even()) {
    // How srun would spread them depends on what is free on each node: it is told.
    std::string lines;
    for (int r = 0; r < plan.world_size().value; ++r)
      lines += plan.hosts[static_cast<std::size_t>(plan.place_of(Rank(r)).node)] + "\n";
    const Path file = std::filesystem::absolute(options_.attempt.hosts());
    RETURN_IF_ERROR(write_file(file, lines));
    set_variable(environment, "SLURM_HOSTFILE", file.string());
    request.tasks_per_node = 0;
  }
  request.command = std::move(argv);
  OK_OR_RETURN(srun, start_one(slurm::srun_arguments(request), std::move(environment), std::nullopt));
  starters_.push_back(std::move(srun));
  return {};
}

Status RankGroup::start_each(const std::vector<std::string>& argv, const Environment& base) {
  const WorldSize size = options_.plan.world_size();
  for (int r = 0; r < size.value; ++r) {
    Environment environment = base;
    set_variable(environment, kPlaceVariable, to_text(Place{Rank(r), size, r, size.value, 0}));
    auto starter = start_one(argv, std::move(environment), r);
    if (!starter.ok()) {
      kill_all();
      return std::move(starter).error();
    }
    starters_.push_back(std::move(*starter));
  }
  return {};
}

Result<Starter> RankGroup::start_one(std::vector<std::string> argv, Environment environment,
                                     std::optional<int> rank) {
  OK_OR_RETURN(out, Pipe::create());
  OK_OR_RETURN(err, Pipe::create());
  Command command;
  command.argv = std::move(argv);
  command.environment = std::move(environment);
  command.directory = options_.working_directory;
  command.stdout_fd = out.write.get();
  command.stderr_fd = err.write.get();
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  OK_OR_RETURN(child, Child::spawn(command));
  ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  const std::string prefix = format("[{}] ", rank.value_or(0));
  return Starter{std::move(child),  rank, std::move(out.read), std::move(err.read), LineMarker(prefix),
                 LineMarker(prefix)};
}

void RankGroup::start_helper() {
  if (!options_.beside) return;
  const pid_t parent = ::getpid();
  helper_ = ::fork();
  if (helper_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  (void)!::nice(10);
  options_.beside();
  ::_exit(0);
}

}  // namespace stoker::rank
