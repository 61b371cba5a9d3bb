#include "farm/submit/allocations.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "farm/ledger/membership.h"
#include "farm/run/node_resources.h"
#include "farm/run/task_choice.h"
#include "slurm/script/batch_script.h"
#include "slurm/script/script_writer.h"

namespace stoker::farm {

namespace {

constexpr std::uint64_t kMostAllocations = 1000;
constexpr Duration kSchedulerWait = std::chrono::seconds(60);
constexpr double kLikelyLongest = 0.9;

bool is_exclusive(const AllocationRequest& request) {
  return std::any_of(request.extra.begin(), request.extra.end(),
                     [](const std::string& option) { return option.starts_with("--exclusive"); });
}

MachineResources node_of(const AllocationRequest& request) {
  MachineResources node;
  node.cores.resize(request.cpus_per_node > 0 ? static_cast<std::size_t>(request.cpus_per_node) : 1U << 16);
  node.gpus.resize(static_cast<std::size_t>(request.gpus_per_node));
  node.memory = request.memory_per_node.value_or(ByteCount{UINT64_MAX});
  return node;
}

// The share of a node that a task uses; 0 if the node's size is not known.
double share_of(const TaskNeeds& needs, const AllocationRequest& request) {
  double share = 0;
  if (request.cpus_per_node > 0) share = static_cast<double>(needs.cores) / request.cpus_per_node;
  if (request.gpus_per_node > 0)
    share = std::max(share, static_cast<double>(needs.gpus) / request.gpus_per_node);
  if (request.memory_per_node && needs.memory)
    share = std::max(share, static_cast<double>(needs.memory->value) /
                                static_cast<double>(request.memory_per_node->value));
  return share;
}

bool is_too_large(const Status& refused) {
  return refused.message().find("Invalid job array specification") != std::string::npos;
}

// Identifies the jobs of a farm in the queue.
Result<std::string> comment_for(const FarmState& state) {
  STOKER_ASSIGN_OR_RETURN(id, farm_id(state.folder()));
  return "stoker-farm:" + id;
}

}  // namespace

Result<AllocationPlan> plan_allocations(const FarmState& state, const AllocationRequest& request,
                                        bool retries_failed) {
  if (request.cpus_per_node == 0 && !is_exclusive(request))
    return invalid("farm: no number of cores per node (--cpus-per-node)")
        .cure("--cpus-per-node 32, or --sbatch=--exclusive for whole nodes");
  const MachineResources node = node_of(request);
  const TaskChoice choice(state, node, retries_failed);
  const RunTimes& measured = state.run_times();
  const double usable = Seconds(request.time - request.signal_before).count();
  AllocationPlan plan;
  double node_seconds = 0;
  double total = 0;
  double longest = measured.quantile(kLikelyLongest);
  double share = 0;
  Status misfit;
  for (TaskIndex task = 0; task < state.list().size(); ++task) {
    if (!choice.is_open(task)) continue;
    const TaskNeeds& needs = state.list().needs(task);
    if (const Status fits = check_needs(needs, node); !fits.ok()) {
      if (misfit.ok()) misfit = Status(fits).with_context(format("task {}", state.list().name(task)));
      continue;
    }
    ++plan.tasks;
    const double seconds = measured.count() > 0 ? measured.mean()
                           : needs.time         ? Seconds(*needs.time).count()
                                                : 0;
    if (needs.time) longest = std::max(longest, Seconds(*needs.time).count());
    plan.too_long += (needs.time && Seconds(*needs.time).count() > usable) ? 1 : 0;
    share = std::max(share, share_of(needs, request));
    total += seconds;
    node_seconds += seconds * share_of(needs, request);
  }
  if (plan.tasks == 0 && !misfit.ok()) return misfit;
  if (share > 0)
    plan.tasks_at_once =
        static_cast<std::uint64_t>(std::floor(1 / share + 1e-9)) * static_cast<std::uint64_t>(request.nodes);
  if (total > 0) plan.seconds = total / static_cast<double>(plan.tasks);
  if (request.count > 0) {
    plan.allocations = request.count;
  } else if (node_seconds > 0) {
    // The last task of an allocation may begin no later than it can end.
    const double useful = std::max(usable - longest, usable / 10) * request.nodes;
    plan.allocations = static_cast<std::uint64_t>(std::ceil(node_seconds / useful));
  }
  plan.allocations = std::clamp<std::uint64_t>(plan.allocations, 1, kMostAllocations);
  return plan;
}

Result<std::string> allocation_script(const FarmState& state, const AllocationRequest& request,
                                      std::uint64_t count) {
  STOKER_ASSIGN_OR_RETURN(comment, comment_for(state));
  const Path folder = std::filesystem::absolute(state.folder());
  STOKER_ASSIGN_OR_RETURN(logs, slurm::log_pattern(folder / "jobs"));
  slurm::ScriptWriter lines;
  lines.text("#!/bin/bash");
  lines.add_comment(printable(format("stoker farm: {}", folder.filename().string())));
  lines.option("--job-name", folder.stem().string());
  lines.option("--comment", comment);
  lines.option_if("--account", request.account);
  lines.option_if("--partition", request.partition);
  lines.option_if("--qos", request.qos);
  lines.option_if("--reservation", request.reservation);
  lines.option("--nodes", format("{}", request.nodes));
  lines.option("--ntasks-per-node", "1");
  lines.option_if("--cpus-per-task", request.cpus_per_node);
  lines.option_if("--gpus-per-node", request.gpus_per_node);
  if (request.memory_per_node) lines.option("--mem", slurm::slurm_memory(*request.memory_per_node));
  lines.option("--time", slurm::slurm_duration(request.time));
  if (count > 1) {
    lines.add_comment("Each job takes tasks from the same farm until none is left.");
    lines.option("--array", format("1-{}", count));
  }
  lines.option("--chdir", std::filesystem::current_path().string());
  lines.option("--output", logs + (count > 1 ? "/%A_%a.log" : "/%j.log"));
  lines.add_comment("After a preemption Slurm restarts this script, which continues with the open tasks.");
  lines.text("#SBATCH --requeue");
  lines.option("--open-mode", "append");
  for (const std::string& option : request.extra) {
    STOKER_RETURN_IF_ERROR(slurm::check_extra(option).with_context("--sbatch"));
    lines.raw_option(option);
  }
  lines.text("");
  STOKER_RETURN_IF_ERROR(slurm::add_exec(lines, request.command));
  return std::move(lines).finish();
}

Result<std::vector<std::string>> submit_allocations(const FarmState& state, const AllocationRequest& request,
                                                    std::uint64_t count, slurm::Scheduler& scheduler) {
  STOKER_RETURN_IF_ERROR(make_directories(state.folder() / "jobs"));
  const Path script = state.folder() / "jobs" / "farm.sbatch";
  const auto submit = [&](std::uint64_t part) -> Result<std::string> {
    STOKER_ASSIGN_OR_RETURN(text, allocation_script(state, request, part));
    STOKER_RETURN_IF_ERROR(write_file(script, text));
    return scheduler.submit(script, Deadline::after(kSchedulerWait));
  };
  auto whole = submit(count);
  if (whole.ok()) return std::vector{*std::move(whole)};
  if (!is_too_large(whole.error())) return std::move(whole).error();
  STOKER_ASSIGN_OR_RETURN(most, scheduler.max_array_tasks(Deadline::after(kSchedulerWait)));
  std::vector<std::string> jobs;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t part =
        std::min(count - done, static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1)));
    auto job = submit(part);
    if (!job.ok() && done == 0) return std::move(job).error();
    if (!job.ok())
      return std::move(job).error().with_context(
          format("{} of {} allocations are in the queue", done, count));
    jobs.push_back(*std::move(job));
    done += part;
  }
  return jobs;
}

Result<std::vector<slurm::JobInfo>> queued_allocations(const FarmState& state, slurm::Scheduler& scheduler) {
  STOKER_ASSIGN_OR_RETURN(comment, comment_for(state));
  STOKER_ASSIGN_OR_RETURN(jobs, scheduler.jobs(Deadline::after(kSchedulerWait)));
  std::vector<slurm::JobInfo> found;
  for (slurm::JobInfo& job : jobs.jobs) {
    if (job.comment == comment && !slurm::is_over(job.state)) found.push_back(std::move(job));
  }
  return found;
}

}  // namespace stoker::farm
