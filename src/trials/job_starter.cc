#include "trials/job_starter.h"

#include <filesystem>

#include "launch/script/resume_script.h"
#include "launch/script/user_script.h"
#include "launch/start/submit.h"
#include "sweep/runner/command_template.h"

namespace stoker::trials {

namespace {

constexpr Duration kSubmitLimit = std::chrono::seconds(60);  // sbatch retries while the controller is busy

class JobStarter final : public TrialStarter {
 public:
  JobStarter(TrialJob job, sweep::Space space, slurm::Scheduler& scheduler)
      : job_(std::move(job)), space_(std::move(space)), scheduler_(scheduler) {}

  Result<std::optional<record::RunFolder>> start(TrialAttempt trial,
                                                 const sweep::Proposal& proposal) override {
    auto submitted = job_.is_script ? submit_script(trial, proposal) : submit_job(trial, proposal);
    if (!submitted) return std::move(submitted).error();
    return std::optional(submitted->folder);
  }
  Status resume(TrialAttempt, const record::RunFolder& run, const launch::RunLife& life) override {
    if (job_.is_script) {
      STOKER_ASSIGN_OR_RETURN(plan, launch::resume_script(run, life, {}, job_.stoker));
      return launch::submit_script(plan, scheduler_, Deadline::after(kSubmitLimit)).status();
    }
    STOKER_ASSIGN_OR_RETURN(request, launch::resume_request(run, life, {}));
    request.typed = job_.typed;
    request.stoker = job_.stoker;
    return launch::submit(request, scheduler_, Deadline::after(kSubmitLimit)).status();
  }
  bool stop(TrialAttempt) override { return false; }
  bool is_starting(TrialAttempt) override { return false; }
  std::optional<std::string> failure(TrialAttempt) override { return std::nullopt; }
  void shut_down(Duration) override {}

 private:
  Result<launch::Submission> submit_job(TrialAttempt trial, const sweep::Proposal& proposal) {
    STOKER_ASSIGN_OR_RETURN(request, trial_request(job_, trial, proposal.values));
    STOKER_RETURN_IF_ERROR(launch::check_submission(request));
    return launch::submit(request, scheduler_, Deadline::after(kSubmitLimit));
  }
  Result<launch::Submission> submit_script(TrialAttempt trial, const sweep::Proposal& proposal) {
    launch::ScriptRequest request{.script = job_.file};
    sweep::Assignment values = proposal.values;
    if (trial.seed) values.emplace_back("seed", static_cast<double>(*trial.seed));
    request.arguments = sweep::fill_command(job_.plan.arguments, space_, values);
    request.set = {format("name={}", run_name(job_.study, trial)),
                   format("record.directory={}", job_.runs.string())};
    request.typed = job_.typed;
    request.stoker = job_.stoker;
    std::error_code error;
    request.directory = std::filesystem::current_path(error);
    if (error) return posix_error("current folder", error.value());
    STOKER_ASSIGN_OR_RETURN(plan, launch::plan_script(std::move(request)));
    return launch::submit_script(plan, scheduler_, Deadline::after(kSubmitLimit));
  }

  TrialJob job_;
  sweep::Space space_;
  slurm::Scheduler& scheduler_;
};

}  // namespace

Result<launch::Request> trial_request(const TrialJob& job, TrialAttempt trial,
                                      const sweep::Assignment& values) {
  job::LoadOptions load;
  for (const auto& [name, value] : current_environment()) load.environment.push_back(name + "=" + value);
  load.set = job.plan.set;
  const std::vector<std::string> settings = trial_settings(values);
  load.set.insert(load.set.end(), settings.begin(), settings.end());
  if (trial.seed) {
    STOKER_ASSIGN_OR_RETURN(plain, job::load(job.file, load));
    load.set.push_back(format("{}.seed={}", plain.train ? "train" : "params", *trial.seed));
  }
  load.set.push_back(format("name={}", run_name(job.study, trial)));
  load.set.push_back(format("record.directory={}", job.runs.string()));
  STOKER_ASSIGN_OR_RETURN(loaded, job::load(job.file, load));
  launch::Request request{.job = std::move(loaded)};
  request.job_file = job.file.string();
  request.load = std::move(load);
  request.typed = job.typed;
  request.stoker = job.stoker;
  return request;
}

std::unique_ptr<TrialStarter> make_job_starter(TrialJob job, sweep::Space space,
                                               slurm::Scheduler& scheduler) {
  return std::make_unique<JobStarter>(std::move(job), std::move(space), scheduler);
}

}  // namespace stoker::trials
