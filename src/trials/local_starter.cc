#include "trials/local_starter.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

#include "base/language/counted.h"
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
    if (resources.memory_per_node)
      words.push_back(format("--mem={}M", (resources.memory_per_node->value + (1 << 20) - 1) >> 20));
    words.emplace_back("env");
    for (const std::string_view name : kAllocationVariables) {
      words.emplace_back("-u");
      words.emplace_back(name);
    }
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  Status spawn(TrialAttempt trial, std::vector<std::string> command, const job::Job& job,
               const sweep::Proposal* proposal) {
    LocalRun run;
    run.slot = free_slot();
    run.log = job_.runs / format("{}.log", run_name(job_.study, trial));
    Environment environment = current_environment();
    if (proposal != nullptr) set_variable(environment, "STOKER_TRIAL", format("{}", proposal->number));
    if (allocation_) {
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

Result<std::unique_ptr<TrialStarter>> make_local_starter(TrialJob job) {
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  return std::unique_ptr<TrialStarter>(std::make_unique<LocalStarter>(std::move(job), std::move(allocation)));
}

}  // namespace stoker::trials
