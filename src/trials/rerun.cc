#include "trials/rerun.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/json/json.h"
#include "base/process.h"
#include "launch/status/control.h"
#include "sweep/results/spread.h"
#include "trials/run_values.h"
#include "trials/trial_runs.h"

namespace stoker::trials {

namespace {

constexpr double kTolerance = 0.01;

// `stoker rerun` queues what was queued and runs what was run; both print the new run's folder.
Result<record::RunFolder> start_rerun(const record::RunFolder& run, const std::string& name, const Path& runs,
                                      const RerunOptions& options) {
  Command command;
  command.argv = {options.stoker.string(),
                  "rerun",
                  run.folder().string(),
                  "--set",
                  format("name={}", name),
                  "--set",
                  format("record.directory={}", runs.string()),
                  "--json"};
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::never()));
  const auto json = parse_json<nlohmann::ordered_json>(done.out);
  if (json.is_object() && json.contains("folder") && json["folder"].is_string())
    return record::RunFolder::open(json["folder"].get<std::string>());
  std::string reason = to_text(done.exit);
  if (json.is_object() && json.contains("error") && json["error"].contains("message"))
    reason = json["error"]["message"].get<std::string>();
  return unavailable("{}: its rerun did not start: {}", run.id(), printable(reason));
}

}  // namespace

double relative_difference(const std::vector<double>& before, const std::vector<double>& after) {
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double difference = std::abs(after[i] - before[i]);
    largest = std::max(largest, before[i] == 0 ? difference : difference / std::abs(before[i]));
  }
  return largest;
}

RerunVerdict judge_reruns(const std::vector<double>& before, const std::vector<std::vector<double>>& after) {
  if (relative_difference(before, after.back()) <= kTolerance) return RerunVerdict::equal;
  if (after.size() < 2) return RerunVerdict::different;
  for (std::size_t i = 0; i < before.size(); ++i) {
    double least = after[0][i];
    double most = after[0][i];
    double sum = 0;
    for (const std::vector<double>& values : after) {
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
      sum += values[i];
    }
    const double mean = sum / static_cast<double>(after.size());
    if (std::abs(before[i] - mean) > most - least) return RerunVerdict::different;
  }
  return RerunVerdict::within_spread;
}

bool is_within_seeds(const sweep::StudyTrial& trial, const std::vector<double>& after) {
  if (trial.seeds.size() < 2) return false;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double own = trial.seeds.begin()->second[i];
    if (std::abs(after[i] - own) > sweep::range_of(trial, i)) return false;
  }
  return true;
}

Result<TrialRerun> rerun_trial(const sweep::Study& study, const sweep::StudyTrial& trial,
                               const RerunOptions& options, slurm::Scheduler& scheduler) {
  TrialRuns runs(study);
  STOKER_RETURN_IF_ERROR(runs.refresh());
  // Of several seeds, only the first one runs again.
  const bool has_seeds = !trial.seeds.empty();
  const TrialAttempt attempt = has_seeds ? runs.last_attempt(trial.number, trial.seeds.begin()->first)
                                         : TrialAttempt{trial.number, trial.attempt};
  const std::vector<double>& before = has_seeds ? trial.seeds.begin()->second : trial.values;
  const record::RunFolder* const run = runs.find(attempt);
  if (run == nullptr || !study.is_of_folder(trial))
    return not_found("{}: trial {} has no run, so it cannot be repeated ({})", study.definition().name,
                     trial.number, runs_folder(study))
        .cure("stoker sweep SWEEP.yaml --job job.yaml      (its trials are runs)");
  TrialRerun rerun{.before = *run};
  STOKER_ASSIGN_OR_RETURN(request, launch::rerun_request(*run, {}));
  rerun.drift = launch::find_drift(*run, request.job);
  // The settings of a trial differ from its job file on purpose, and the rerun keeps them.
  std::erase_if(rerun.drift, [](const launch::Drift& drift) { return drift.what == "job file"; });
  const Path folder = std::filesystem::absolute(study.folder()) / "reruns";
  const std::string name = format("rerun-of-{}", run_name(study.definition().name, attempt));
  while (rerun.after.size() < options.most && rerun.verdict == RerunVerdict::different) {
    STOKER_ASSIGN_OR_RETURN(next, start_rerun(*run, name.substr(0, 64), folder, options));
    options.on_event(format("trial {}: rerun {}", trial.number, next.id()));
    launch::WaitOptions wait;
    wait.should_stop = options.should_stop;
    STOKER_ASSIGN_OR_RETURN(life, launch::wait_for(next, scheduler, wait));
    if (life.life != launch::Life::done)
      return unavailable("trial {}: its rerun {} {}", trial.number, next.id(), launch::to_text(life))
          .cure("stoker explain {}", shell_quote(next.folder().string()));
    STOKER_ASSIGN_OR_RETURN(values, read_values(next, study.definition()));
    rerun.after.push_back(std::move(next));
    rerun.values.push_back(std::move(values));
    rerun.difference = relative_difference(before, rerun.values.back());
    rerun.verdict = judge_reruns(before, rerun.values);
    if (rerun.verdict == RerunVerdict::different && is_within_seeds(trial, rerun.values.back()))
      rerun.verdict = RerunVerdict::within_seeds;
  }
  return rerun;
}

}  // namespace stoker::trials
