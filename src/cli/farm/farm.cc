// `stoker farm TASKS`: docs/commands/farm.md
#include <algorithm>
#include <csignal>
#include <utility>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/farm/farm_request.h"
#include "cli/run_request.h"
#include "farm/ledger/membership.h"
#include "farm/run/steps.h"
#include "farm/run/task_choice.h"
#include "farm/run/worker.h"
#include "farm/show/farm_folder.h"
#include "launch/start/submit.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;
using farm::FarmState;

constexpr int kMostRounds = 10;
constexpr std::uint64_t kMostFailuresShown = 10;
constexpr Duration kLostPoll = std::chrono::seconds(5);
constexpr Duration kLostWait = std::chrono::seconds(60);
constexpr std::array<std::string_view, 10> kAllocationOptions = {
    "--time",    "--nodes",     "--cpus-per-node", "--gpus-per-node", "--memory-per-node",
    "--account", "--partition", "--qos",           "--allocations",   "--sbatch"};

int parse_signal_name(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) {
    if (signal_name(signal).substr(3) == name) return signal;
  }
  return 0;
}

// The words of this call without the options of an allocation, for its batch script.
std::vector<std::string> job_command(const Path& program, std::span<const std::string> words) {
  std::vector<std::string> command = {program.string(), "farm"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      command.insert(command.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    const std::string_view name = std::string_view(words[i]).substr(0, words[i].find('='));
    if (std::find(kAllocationOptions.begin(), kAllocationOptions.end(), name) == kAllocationOptions.end()) {
      if (words[i] != "--json") command.push_back(words[i]);
    } else if (name == words[i]) {
      ++i;
    }
  }
  return command;
}

struct FarmResult {
  std::optional<int> signal;
  bool is_out_of_time = false;
  std::uint64_t skipped = 0;  // tasks that were satisfied before
  Duration took{0};
};

// A finished srun leaves no worker of this job.
farm::JobIsOver job_query(const std::string& own_job) {
  return [own_job](const std::string& job) -> std::optional<bool> {
    if (job == own_job) return true;
    const std::vector<std::string> ids = {job};
    const auto found =
        slurm::SlurmCommands(current_environment()).find(ids, Deadline::after(std::chrono::seconds(20)));
    if (!found) return std::nullopt;
    return found->jobs.empty() || slurm::is_over(found->jobs.front().state);
  };
}

Result<FarmResult> run_step(FarmState& state, const FarmRequest& request, Output& out,
                            const std::optional<slurm::Allocation>& allocation, std::optional<double> end) {
  farm::WorkerOptions options{.at_once = static_cast<std::size_t>(request.at_once),
                              .retries = static_cast<std::uint32_t>(request.retries),
                              .retries_failed = request.retries_failed,
                              .is_pinned = request.is_pinned,
                              .end_signal = parse_signal_name(request.signal),
                              .signal_before = request.signal_before,
                              .end_time = end};
  if (allocation) options.job = allocation->job_id;
  options.machine = farm::machine_resources(slurm::process_environment());
  options.job_is_over = job_query("");
  STOKER_ASSIGN_OR_RETURN(environment, task_environment(request.job, out));
  if (request.job) STOKER_RETURN_IF_ERROR(place_data(*request.job, environment.variables, out));
  options.environment = std::move(environment.variables);
  options.wrapper = std::move(environment.wrapper);
  const std::unique_ptr<Progress> progress = out.progress(state.folder().string());
  std::uint64_t shown = 0;
  options.on_failure = [&](const farm::TaskFailure& failure) {
    if (++shown > kMostFailuresShown) return;
    out.note("task {} failed: {} ({})", printable(state.list().name(failure.task)), failure.why,
             printable(clipped(state.list().command(failure.task), 200)));
    if (shown == kMostFailuresShown) out.note("further failures are counted only");
  };
  options.on_progress = [&](const farm::TaskCounts& counts, std::size_t) {
    progress->report(
        {.done = counts.done + counts.up_to_date, .total = state.list().size(), .unit = "tasks"});
  };
  STOKER_ASSIGN_OR_RETURN(result, farm::run_worker(state, options));
  return FarmResult{result.signal, result.is_out_of_time};
}

// A worker on each node, and again while a lost node has left tasks behind.
Result<FarmResult> run_steps(FarmState& state, std::span<const std::string> words,
                             const slurm::Allocation& allocation, std::optional<double> end,
                             const FarmRequest& request) {
  FarmResult result;
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  for (int round = 0; round < kMostRounds; ++round) {
    STOKER_ASSIGN_OR_RETURN(step, farm::run_on_all_nodes(allocation, job_command(program, words), end));
    const std::optional<int> signal = step.signal;
    result.signal = signal;
    STOKER_RETURN_IF_ERROR(state.refresh());
    const Deadline deadline = Deadline::after(kLostWait);
    while (!signal && state.counts().claimed > 0 && !deadline.passed()) {
      STOKER_RETURN_IF_ERROR(
          state.find_lost_workers(unix_seconds(RealClock().wall()), job_query(allocation.job_id)));
      if (state.counts().claimed > 0) RealClock().sleep(kLostPoll);
    }
    const double left =
        end ? *end - Seconds(request.signal_before).count() - unix_seconds(RealClock().wall()) : 1e18;
    result.is_out_of_time = end && left < 60 && state.counts().waiting > 0;
    const bool has_lost =
        std::any_of(state.workers().begin(), state.workers().end(), [&](const auto& worker) {
          return worker.job == allocation.job_id && worker.is_over && !worker.has_exited;
        });
    const bool runs_again = has_lost || step.is_stopped;
    if (signal || result.is_out_of_time || state.counts().waiting == 0 || !runs_again) break;
  }
  return result;
}

// Tasks that need not run again.
std::uint64_t count_satisfied(const FarmState& state, const FarmRequest& request) {
  const farm::MachineResources machine;
  const farm::TaskChoice choice(state, machine, request.retries_failed);
  std::uint64_t count = 0;
  for (farm::TaskIndex task = 0; task < state.list().size(); ++task)
    count += choice.is_satisfied(task) ? 1 : 0;
  return count;
}

int finish_farm(const FarmState& state, const std::string& tasks, const FarmResult& result, Output& out) {
  const std::uint64_t skipped = result.skipped;
  const farm::TaskCounts counts = state.counts();
  const std::uint64_t ended =
      counts.done + counts.up_to_date - std::min(skipped, counts.done + counts.up_to_date);
  std::string text = format("{}: {}", state.folder().string(), farm::counts_text(counts));
  if (skipped > 0) text += format(", {} of them before", grouped(skipped));
  text += format(" ({}", rounded_duration(result.took));
  const double seconds = Seconds(result.took).count();
  if (ended > 0 && seconds > 0) text += format(", {:.3g} tasks/s", static_cast<double>(ended) / seconds);
  out.note("{})", text);
  if (counts.failed > 0 && !result.signal)
    out.note("  try: stoker farm {} --list      (--retry-failed runs them again)", shell_quote(tasks));
  out.json(json_text(Json{{"tasks", state.list().size()},
                          {"done", counts.done},
                          {"up_to_date", counts.up_to_date},
                          {"skipped", skipped},
                          {"failed", counts.failed},
                          {"claimed", counts.claimed},
                          {"waiting", counts.waiting},
                          {"seconds", seconds}}));
  if (result.signal) return 128 + *result.signal;
  if (result.is_out_of_time && counts.waiting > 0) return exit_code::kStoppedAfterCheckpoint;
  return counts.failed + counts.waiting > 0 ? exit_code::kFailed : exit_code::kOk;
}

int run_farm(FarmState& state, const FarmRequest& request, std::span<const std::string> words, Output& out) {
  const auto allocation = slurm::current_allocation(slurm::process_environment());
  const auto task = slurm::current_task(slurm::process_environment());
  if (!allocation.ok()) return out.fail(allocation.error());
  if (!task.ok()) return out.fail(task.error());
  std::optional<double> end;
  if (*allocation) {
    slurm::SlurmCommands scheduler(current_environment());
    end = farm::allocation_end(**allocation, scheduler);
  }
  const std::uint64_t skipped = count_satisfied(state, request);
  const MonoTime began = RealClock().mono();
  const bool uses_srun = *allocation && !*task && (*allocation)->nodes.size() > 1;
  auto result = uses_srun ? run_steps(state, words, **allocation, end, request)
                          : run_step(state, request, out, *allocation, end);
  if (!result.ok()) return out.fail(result.error());
  if (environment_value(std::string(farm::kStepVariable)) && !uses_srun)
    return result->signal ? 128 + *result->signal : exit_code::kOk;
  result->skipped = skipped;
  result->took = RealClock().mono() - began;
  return finish_farm(state, request.tasks, *result, out);
}

std::string plan_text(const farm::AllocationPlan& plan, const FarmRequest& request) {
  const farm::AllocationRequest& allocation = request.allocation;
  const double hours =
      Seconds(allocation.time).count() / 3600 * static_cast<double>(plan.allocations) * allocation.nodes;
  std::string text = format("{} x {} x {}: {:.3g} node hours", counted(plan.allocations, "allocation"),
                            counted(static_cast<std::uint64_t>(allocation.nodes), "node"),
                            duration_text(allocation.time), hours);
  if (allocation.cpus_per_node > 0) text += format(", {:.3g} core hours", hours * allocation.cpus_per_node);
  return text;
}

int submit_farm(FarmState& state, FarmRequest& request, std::span<const std::string> words, Output& out) {
  farm::AllocationRequest& allocation = request.allocation;
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  allocation.command = job_command(*program, words);
  allocation.signal_before = request.signal_before;
  const auto plan = farm::plan_allocations(state, allocation, request.retries_failed);
  if (!plan.ok()) return out.fail(plan.error());
  Json facts{{"tasks", plan->tasks}, {"allocations", plan->allocations}, {"files", 3 * plan->allocations}};
  out.line("{}: {} to run, {} at once in an allocation", state.folder().string(),
           counted(plan->tasks, "task"),
           plan->tasks_at_once > 0 ? format("{}", plan->tasks_at_once) : "as many as fit");
  if (plan->seconds) {
    facts["task_seconds"] = *plan->seconds;
    out.line("  run time   {:.3g} s on average", *plan->seconds);
  } else {
    out.line("  run time   not known (--task-time)");
  }
  out.line("  submits    {}", plan_text(*plan, request));
  out.line("  files      3 for each node of an allocation: ledger, output, log");
  if (plan->too_long > 0)
    out.line("  too long   {} of more than {}", counted(plan->too_long, "task"),
             duration_text(allocation.time));
  if (plan->tasks == 0 || request.is_dry_run) {
    out.json(json_text(facts));
    return exit_code::kOk;
  }
  if (const Status checked = check_farm_job(request.job, out); !checked.ok()) return out.fail(checked);
  slurm::SlurmCommands scheduler(request.job
                                     ? launch::scheduler_environment(*request.job, current_environment())
                                     : current_environment());
  const auto queued = farm::queued_allocations(state, scheduler);
  if (!queued.ok()) return out.fail(queued.error());
  if (!queued->empty() && allocation.count == 0)
    return out.fail(exists("{}: {} of it in the queue ({}; --allocations adds more)", state.folder(),
                           counted(queued->size(), "job is", "jobs are"), queued->front().id)
                        .cure("stoker farm {} --status", shell_quote(request.tasks)));
  const auto jobs = farm::submit_allocations(state, allocation, plan->allocations, scheduler);
  if (!jobs.ok()) return out.fail(jobs.error());
  out.line("submitted {}", join(*jobs, ", "));
  facts["jobs"] = *jobs;
  out.json(json_text(facts));
  return exit_code::kOk;
}

void declare(Arguments& arguments, FarmRequest& o, FarmNumbers& n) {
  arguments.positional("TASKS", &o.tasks, "Commands, one per line; a table (.csv, .tsv); a YAML list");
  arguments.option("--at-once", &o.at_once, "N", "Most tasks at the same time on a node, 0 by its cores");
  arguments.option("--cores", &n.cores, "N", "Cores of a task");
  arguments.option("--gpus", &n.gpus, "N", "GPUs of a task (CUDA_VISIBLE_DEVICES)");
  arguments.option("--memory", &o.needs.memory, "SIZE", "Memory of a task; one that uses more is stopped");
  arguments.option("--task-time", &o.needs.time, "DURATION", "Longest run time of a task");
  arguments.option("--retries", &o.retries, "N",
                   "Run a failed task again, with twice the memory if it ran out");
  arguments.flag("--retry-failed", &o.retries_failed, "Also run the tasks that failed before");
  arguments.flag("--pin", &o.is_pinned, "Bind each task to its cores");
  arguments.option("--signal", &o.signal, "NAME", "Signal to tasks before the end of the allocation");
  arguments.option("--signal-before", &n.signal_before, "DURATION", "How long before the end");
  arguments.option("--time", &n.time, "DURATION", "Submit allocations of this length");
  arguments.option("--job", &o.job_file, "JOB",
                   "Job file with resources, partition, account, modules, environment, container");
  arguments.option("--set", &o.set, "KEY=VALUE", "Override a value of the job file");
  arguments.option("--nodes", &n.nodes, "N", "Nodes of an allocation");
  arguments.option("--cpus-per-node", &n.cpus_per_node, "N", "Cores of a node of an allocation");
  arguments.option("--gpus-per-node", &n.gpus_per_node, "N", "GPUs of a node of an allocation");
  arguments.option("--memory-per-node", &o.allocation.memory_per_node, "SIZE", "Memory of a node");
  arguments.option("--partition", &o.allocation.partition, "NAME", "Partition of the allocations");
  arguments.option("--account", &o.allocation.account, "NAME", "Account of the allocations");
  arguments.option("--qos", &o.allocation.qos, "NAME", "QOS of the allocations");
  arguments.option("--sbatch", &o.allocation.extra, "OPTION", "A further option of sbatch");
  arguments.option("--allocations", &n.allocations, "N", "Number of allocations, 0 by the run times");
  arguments.flag("--dry-run", &o.is_dry_run, "Show tasks, allocations, hours and files; run nothing");
  arguments.flag("--status", &o.shows_status, "Show how many tasks are done, rate and expected end");
  arguments.flag("--list", &o.shows_list, "List the tasks and their state");
  arguments.flag("--output", &o.shows_output, "Print the outputs in the order of the tasks");
  arguments.option("--task", &o.chosen, "NAME", "With --list and --output: only this task");
  arguments.rest("COMMAND", &o.command, "Command with {column}, {1} or {} for each row, after --");
  arguments.example("stoker farm tasks.txt");
}

Status check(FarmRequest& o, const FarmNumbers& n) {
  const std::int64_t nodes = n.nodes.value_or(1);
  const std::pair<std::string_view, std::pair<std::int64_t, std::int64_t>> limits[] = {
      {"--cores", {n.cores, 1}},     {"--gpus", {n.gpus, 0}},
      {"--nodes", {nodes, 1}},       {"--cpus-per-node", {n.cpus_per_node, 0}},
      {"--retries", {o.retries, 0}}, {"--gpus-per-node", {n.gpus_per_node, 0}},
      {"--at-once", {o.at_once, 0}}, {"--allocations", {n.allocations, 0}}};
  for (const auto& [name, value] : limits) {
    if (value.first < value.second || value.first > 100'000)
      return invalid("{}: {} is not from {} to 100 000", name, value.first, value.second);
  }
  if (parse_signal_name(o.signal) == 0)
    return invalid("--signal: '{}' is not TERM, INT, HUP, USR1, USR2 or QUIT", printable(o.signal));
  const farm::AllocationRequest& a = o.allocation;
  const bool wants_allocation = nodes > 1 || n.cpus_per_node > 0 || n.gpus_per_node > 0 ||
                                n.allocations > 0 || a.memory_per_node || !a.account.empty() ||
                                !a.partition.empty() || !a.qos.empty() || !a.reservation.empty() ||
                                !a.extra.empty();
  if (wants_allocation && !n.time)
    return invalid("farm: no length of the allocations ({})",
                   o.job ? "--time, resources.time in the job file" : "--time")
        .cure("--time 4h");
  o.needs.cores = static_cast<std::uint32_t>(n.cores);
  o.needs.gpus = static_cast<std::uint32_t>(n.gpus);
  o.signal_before = n.signal_before.value_or(std::chrono::seconds(60));
  o.allocation.time = n.time.value_or(Duration(0));
  o.allocation.nodes = static_cast<int>(nodes);
  o.allocation.cpus_per_node = static_cast<int>(n.cpus_per_node);
  o.allocation.gpus_per_node = static_cast<int>(n.gpus_per_node);
  o.allocation.count = static_cast<std::uint64_t>(n.allocations);
  if (n.time && *n.time <= o.signal_before)
    return invalid("--time: {} is not longer than --signal-before ({})", duration_text(*n.time),
                   duration_text(o.signal_before));
  return {};
}

}  // namespace

int farm_tasks(std::span<const std::string> words, Output& out) {
  FarmRequest o;
  FarmNumbers n;
  Arguments arguments("farm", "Run many small tasks, here or in few allocations.");
  declare(arguments, o, n);
  if (const auto code = arguments.parse(words, out)) return *code;
  const bool shows = o.shows_status || o.shows_list || o.shows_output;
  if (!o.job_file.empty() && !shows) {
    if (const Status read = read_farm_job(o, n); !read.ok()) return out.fail(read);
  } else if (!o.set.empty() && o.job_file.empty()) {
    return out.fail(invalid("--set: no job file (--job)").cure("--job job.yaml"));
  }
  if (const Status checked = check(o, n); !checked.ok()) return out.fail(checked);
  if (shows) return show_farm(o, out);
  const auto list = farm::TaskList::load(o.tasks, o.command, o.needs);
  if (!list.ok()) return out.fail(list.error());
  const Path folder = farm::farm_folder(o.tasks);
  FarmState state(folder, *list);
  const bool submits = o.allocation.time > Duration(0);
  if (!o.is_dry_run) {
    if (const Status made = farm::prepare_farm(folder); !made.ok()) return out.fail(made);
    if (const Status saved = farm::save_command(folder, o.command); !saved.ok()) return out.fail(saved);
  }
  if (const Status read = state.refresh(); !read.ok()) return out.fail(read);
  if (submits) return submit_farm(state, o, words, out);
  if (!o.is_dry_run) return run_farm(state, o, words, out);
  const farm::TaskCounts counts = state.counts();
  const farm::MachineResources machine = farm::machine_resources(slurm::process_environment());
  out.line("{}: {} ({})", folder.string(), counted(list->size(), "task"), farm::counts_text(counts));
  out.line("  here       {}, {}, {} of memory", counted(machine.cores.size(), "core"),
           counted(machine.gpus.size(), "GPU"), rounded(machine.memory));
  out.line("  files      2: ledger and output");
  out.json(json_text(Json{{"tasks", list->size()}, {"done", counts.done}, {"failed", counts.failed}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
