#include "trials/local_starter.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <initializer_list>
#include <thread>

#include "base/language/counted.h"
#include "base/name_lock.h"
#include "base/process.h"
#include "launch/start/run.h"
#include "launch/state/live_tasks.h"
#include "slurm/allocation.h"
#include "stoker/text.h"
#include "trials/job_starter.h"

namespace stoker::trials {

namespace {

// Variables of this allocation that would make `stoker run` in a step start its ranks with srun.
constexpr std::array<std::string_view, 4> kAllocationVariables = {"SLURM_JOB_ID", "SLURM_JOBID",
                                                                  "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"};

// Variables that a step of several nodes would take from the allocation.
constexpr std::array<std::string_view, 11> kRequestVariables = {
    "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_NTASKS",
    "SLURM_NPROCS",        "SLURM_NNODES",       "SLURM_NTASKS_PER_NODE",
    "SLURM_MEM_PER_CPU",   "SLURM_MEM_PER_NODE", "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS",          "SLURM_TRES_PER_TASK"};

// The smallest number in a variable like "2(x3),1", "gpu:4" or "8000"; 0 without one. A batch script and
// salloc have different variables.
std::int64_t number_of(std::initializer_list<std::string_view> names) {
  std::int64_t least = 0;
  for (const std::string_view name : names) {
    const std::string text = environment_value(std::string(name)).value_or("");
    for (std::string_view part : split(text, ',')) {
      part = part.substr(0, part.find('('));
      if (const std::size_t colon = part.rfind(':'); colon != std::string_view::npos)
        part.remove_prefix(colon + 1);
      std::int64_t number = 0;
      if (parse_number(part, &number) && number > 0) least = least == 0 ? number : std::min(least, number);
    }
    if (least > 0) return least;
  }
  return 0;
}

constexpr std::int64_t kMostShares = 1'000;  // of a node

std::int64_t megabytes(const job::Resources& resources) {
  return static_cast<std::int64_t>((resources.memory_per_node->value + (1 << 20) - 1) >> 20);
}

// Trials side by side on the same nodes.
Result<std::uint32_t> shares_of_node(const job::Resources& resources) {
  struct Need {
    std::string_view what;
    std::int64_t each;
    std::int64_t all;
  };
  std::vector<Need> needs = {
      {"cores", static_cast<std::int64_t>(resources.cpus_per_rank.value_or(1)) * resources.ranks_per_node,
       number_of({"SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE"})}};
  if (resources.gpus_per_node() > 0)
    needs.push_back(
        {"GPUs", resources.gpus_per_node(), number_of({"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"})});
  if (resources.memory_per_node)
    needs.push_back({"MiB of memory", megabytes(resources), number_of({"SLURM_MEM_PER_NODE"})});
  std::int64_t shares = kMostShares;
  for (Need& need : needs) {
    if (need.all == 0 && need.what != "MiB of memory") need.all = need.each;  // not known: one trial
    if (need.all == 0) continue;
    if (need.each > need.all)
      return invalid("a trial needs {} {} on each node, and the allocation has {} (place: here)", need.each,
                     need.what, need.all);
    shares = std::min(shares, need.all / std::max<std::int64_t>(need.each, 1));
  }
  return static_cast<std::uint32_t>(shares);
}

// Nodes for a trial. The lock is free when the run that holds it has ended, also a run of an earlier driver.
struct NodeGroup {
  std::vector<std::string> nodes;
  Fd lock;
};

Result<NodeGroup> free_nodes(const slurm::Allocation& allocation, const job::Resources& resources) {
  STOKER_ASSIGN_OR_RETURN(shares, shares_of_node(resources));
  const std::size_t groups = allocation.nodes.size() / resources.nodes;
  for (std::size_t i = 0; i < groups * shares; ++i) {
    STOKER_ASSIGN_OR_RETURN(lock, lock_name(format("stoker-trial-{}-{}", allocation.job_id, i)));
    if (!lock) continue;
    const auto first = allocation.nodes.begin() + static_cast<std::ptrdiff_t>(i % groups * resources.nodes);
    return NodeGroup{{first, first + resources.nodes}, std::move(lock)};
  }
  return unavailable("no nodes of job {} are free", allocation.job_id);
}

// One `stoker run` or `stoker resume`.
struct LocalRun {
  Child child;
  std::uint32_t slot = 0;
  Path log;
};

class LocalStarter final : public TrialStarter {
 public:
  LocalStarter(TrialJob job, std::optional<slurm::Allocation> allocation)
      : job_(std::move(job)), allocation_(std::move(allocation)) {}

  Result<std::optional<record::RunFolder>> start(TrialAttempt trial,
                                                 const sweep::Proposal& proposal) override {
    STOKER_ASSIGN_OR_RETURN(request, trial_request(job_, trial, proposal.values));
    std::vector<std::string> command = {job_.stoker.string(), "run", job_.file.string()};
    std::vector<std::string> settings = request.load.set;
    if (allocation_ && request.job.resources.nodes > 1 && !request.job.resources.cpus_per_rank)
      settings.emplace_back("resources.cpus_per_rank=1");
    // Otherwise each run would count on all cores.
    if (!allocation_ && !request.job.resources.cpus_per_rank && job_.plan.at_once > 1)
      settings.push_back(format("resources.cpus_per_rank={}", core_share(request.job.resources)));
    for (std::string& setting : settings) {
      command.emplace_back("--set");
      command.push_back(std::move(setting));
    }
    STOKER_RETURN_IF_ERROR(spawn(trial, std::move(command), request.job, &proposal));
    return std::optional<record::RunFolder>();
  }
  Status resume(TrialAttempt trial, const record::RunFolder& run, const launch::RunLife& life) override {
    STOKER_ASSIGN_OR_RETURN(request, launch::resume_request(run, life, {}));
    STOKER_ASSIGN_OR_RETURN(from, launch::find_resume_point(request, run));
    std::vector<std::string> command = {job_.stoker.string(), "resume", run.folder().string()};
    if (from.step.empty()) command.emplace_back("--from-start");
    return spawn(trial, std::move(command), request.job, nullptr);
  }
  bool stop(TrialAttempt trial) override {
    const auto found = running_.find(trial);
    return found != running_.end() && !found->second.child.poll() && found->second.child.signal(SIGTERM).ok();
  }
  bool is_starting(TrialAttempt trial) override {
    const auto found = running_.find(trial);
    return found != running_.end() && !found->second.child.poll();
  }
  std::optional<std::string> failure(TrialAttempt trial) override {
    const auto found = running_.find(trial);
    if (found == running_.end() || !found->second.child.poll()) return std::nullopt;
    std::string line = launch::last_line_of(found->second.log);
    return line.empty() ? to_text(*found->second.child.poll()) : line;
  }
  void shut_down(Duration grace) override {
    for (auto& [trial, run] : running_) {
      if (!run.child.poll()) (void)run.child.signal(SIGTERM);
    }
    const Deadline deadline = Deadline::after(grace);
    for (auto& [trial, run] : running_) (void)run.child.wait(deadline);
  }

 private:
  std::uint32_t free_slot() {
    std::vector<bool> is_used(running_.size() + 1, false);
    for (auto& [trial, run] : running_) {
      if (!run.child.poll() && run.slot < is_used.size()) is_used[run.slot] = true;
    }
    return static_cast<std::uint32_t>(std::find(is_used.begin(), is_used.end(), false) - is_used.begin());
  }

  unsigned core_share(const job::Resources& resources) const {
    const unsigned ranks = job_.plan.at_once * std::max(1U, resources.world_size());
    return std::max(1U, std::thread::hardware_concurrency() / ranks);
  }

  // The share of a slot in the GPUs that this process may use.
  Result<std::string> gpus_of(std::uint32_t slot, std::uint32_t count) const {
    const auto visible = environment_value("CUDA_VISIBLE_DEVICES");
    std::vector<std::string> devices;
    for (std::uint32_t i = slot * count; i < (slot + 1) * count; ++i) {
      if (!visible) {
        devices.push_back(format("{}", i));
        continue;
      }
      const auto all = split(*visible, ',');
      if (i >= all.size())
        return invalid("at_once: {} with {} each, but CUDA_VISIBLE_DEVICES has {}",
                       counted(slot + 1, "trial"), counted(count, "GPU"), visible->empty() ? 0 : all.size());
      devices.emplace_back(all[i]);
    }
    return join(devices, ",");
  }

  std::vector<std::string> as_step(std::vector<std::string> command, const job::Job& job) const {
    const job::Resources& resources = job.resources;
    std::vector<std::string> words = {"srun", "--exact", "--nodes=1", "--ntasks=1", "--quiet"};
    words.push_back(
        format("--cpus-per-task={}", resources.cpus_per_rank.value_or(1) * resources.ranks_per_node));
    if (resources.gpus_per_node() > 0)
      words.push_back(format("--gpus-per-node={}", resources.gpus_per_node()));
    if (resources.memory_per_node) words.push_back(format("--mem={}M", megabytes(resources)));
    words.emplace_back("env");
    for (const std::string_view name : kAllocationVariables) {
      words.emplace_back("-u");
      words.emplace_back(name);
    }
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  static void use_nodes(Environment& environment, const NodeGroup& group, const job::Resources& resources) {
    for (const std::string_view name : kRequestVariables) unset_variable(environment, name);
    set_variable(environment, slurm::kStepNodesVariable, join(group.nodes, ","));
    if (resources.gpus_per_node() > 0)
      set_variable(environment, "SLURM_GPUS_PER_NODE", format("{}", resources.gpus_per_node()));
    if (resources.memory_per_node)
      set_variable(environment, "SLURM_MEM_PER_NODE", format("{}", megabytes(resources)));
  }

  Status spawn(TrialAttempt trial, std::vector<std::string> command, const job::Job& job,
               const sweep::Proposal* proposal) {
    LocalRun run;
    run.slot = free_slot();
    run.log = job_.runs / format("{}.log", run_name(job_.study, trial));
    Environment environment = current_environment();
    if (proposal != nullptr) set_variable(environment, "STOKER_TRIAL", format("{}", proposal->number));
    NodeGroup group;
    if (allocation_ && job.resources.nodes > 1) {
      STOKER_ASSIGN_OR_RETURN(found, free_nodes(*allocation_, job.resources));
      group = std::move(found);
      use_nodes(environment, group, job.resources);
    } else if (allocation_) {
      command = as_step(std::move(command), job);
    } else if (const std::uint32_t gpus = job.resources.gpus_per_node(); gpus > 0) {
      STOKER_ASSIGN_OR_RETURN(devices, gpus_of(run.slot, gpus));
      set_variable(environment, "CUDA_VISIBLE_DEVICES", std::move(devices));
    }
    STOKER_RETURN_IF_ERROR(make_directories(job_.runs));
    STOKER_ASSIGN_OR_RETURN(log, File::create(run.log));
    Command what;
    what.argv = std::move(command);
    what.environment = std::move(environment);
    what.stdout_fd = log.fd();
    what.stderr_fd = log.fd();
    what.group = Group::own;
    what.stdin_fd = group.lock.get();  // the child holds the lock until it ends
    STOKER_ASSIGN_OR_RETURN(child, Child::spawn(what));
    run.child = std::move(child);
    running_.insert_or_assign(trial, std::move(run));
    return {};
  }

  TrialJob job_;
  std::optional<slurm::Allocation> allocation_;
  std::map<TrialAttempt, LocalRun> running_;
};

}  // namespace

Result<std::optional<std::uint32_t>> fitting_trials(const job::Resources& resources) {
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  if (resources.nodes <= 1) return std::optional<std::uint32_t>();
  const std::size_t nodes = allocation ? allocation->nodes.size() : 1;
  if (resources.nodes > nodes)
    return invalid("resources.nodes: a trial needs {}, {} (place: here)", resources.nodes,
                   allocation ? format("and the allocation has {}", nodes) : "and there is no allocation")
        .cure("place: jobs");
  STOKER_ASSIGN_OR_RETURN(shares, shares_of_node(resources));
  const std::size_t fitting = nodes / resources.nodes * shares;
  return std::optional(static_cast<std::uint32_t>(std::min<std::size_t>(fitting, 100'000)));
}

Result<std::unique_ptr<TrialStarter>> make_local_starter(TrialJob job) {
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  return std::unique_ptr<TrialStarter>(std::make_unique<LocalStarter>(std::move(job), std::move(allocation)));
}

}  // namespace stoker::trials
