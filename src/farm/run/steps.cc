#include "farm/run/steps.h"

#include <algorithm>
#include <csignal>
#include <poll.h>

#include "base/process.h"
#include "rank/process/signals.h"

namespace stoker::farm {

namespace {

constexpr Duration kEndQuery = std::chrono::seconds(30);
constexpr Duration kRequeueWait = std::chrono::minutes(5);
constexpr std::string_view kEndVariable = "SLURM_JOB_END_TIME";

}  // namespace

std::optional<double> allocation_end(const slurm::Allocation& allocation, slurm::Scheduler& scheduler) {
  if (allocation.end_time) return allocation.end_time;
  const auto jobs = scheduler.describe(allocation.job_id, Deadline::after(kEndQuery));
  if (!jobs || jobs->jobs.empty()) return std::nullopt;
  const slurm::JobInfo* const job = jobs->find(allocation.job_id);
  return job != nullptr ? job->end : jobs->jobs.front().end;
}

Result<StepEnd> run_on_all_nodes(const slurm::Allocation& allocation, const std::vector<std::string>& command,
                                 std::optional<double> end_time) {
  STOKER_ASSIGN_OR_RETURN(signals, rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1}));
  const auto nodes = static_cast<int>(allocation.nodes.size());
  Command step{.argv = slurm::srun_arguments({.tasks = WorldSize(nodes),
                                              .nodes = nodes,
                                              .tasks_per_node = 1,
                                              .command = command,
                                              .uses_whole_node = true})};
  step.argv.insert(step.argv.begin() + 1, "--no-kill");
  step.group = Group::own;
  Environment environment = current_environment();
  std::vector<std::string> dropped = slurm::variables_to_drop();
  // A value of the job would confine each worker to the cores of one task.
  dropped.insert(dropped.end(), {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", std::string(kEndVariable)});
  std::erase_if(environment, [&](const auto& variable) {
    return std::find(dropped.begin(), dropped.end(), variable.first) != dropped.end();
  });
  environment.emplace_back(kStepVariable, "1");
  if (end_time) environment.emplace_back(kEndVariable, format("{:.0f}", *end_time));
  step.environment = std::move(environment);
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(step));
  StepEnd end;
  std::optional<Exit> exit;
  while (!(exit = child.poll())) {
    pollfd waiting[] = {{child.pidfd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(waiting, 2, -1);
    while (const auto signal = signals.next_signal()) {
      // srun passes SIGTERM on at once; of SIGINT it wants two.
      STOKER_RETURN_IF_ERROR(child.signal(*signal == SIGUSR1 ? SIGUSR1 : SIGTERM));
      if (*signal != SIGUSR1) end.signal = *signal;
    }
  }
  end.is_stopped = !end.signal && exit->shell_code() == 128 + SIGTERM;
  // A job that ends now is not requeued.
  const Deadline deadline = Deadline::after(kRequeueWait);
  while (end.is_stopped && !end.signal && !deadline.passed()) {
    pollfd waiting{signals.fd(), POLLIN, 0};
    ::poll(&waiting, 1, 1000);
    while (const auto signal = signals.next_signal()) end.signal = *signal;
  }
  return end;
}

}  // namespace stoker::farm
