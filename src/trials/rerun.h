// Runs a trial again from the start and compares its values: `stoker sweep best --rerun`. Belongs to one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/start/rerun.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "sweep/study/study.h"

namespace stoker::trials {

/// How the values of a trial and of its reruns relate.
enum class RerunVerdict {
  equal,          ///< within 1 % of each value
  within_spread,  ///< as far from the mean of the reruns as these are from each other
  within_seeds,   ///< no further from the value of the same seed than two seeds from each other
  different,
};
constexpr std::array<std::string_view, 4> names_of(RerunVerdict) {
  return {"equal", "within_spread", "within_seeds", "different"};
}

/// A trial and its reruns.
struct TrialRerun {
  RerunVerdict verdict = RerunVerdict::different;
  record::RunFolder before;
  std::vector<record::RunFolder> after;
  std::vector<std::vector<double>> values;  ///< of each rerun, one for each objective
  std::vector<launch::Drift> drift;         ///< what differs: code, data, packages
  double difference = 0;                    ///< of the last rerun; the largest relative one of the objectives
};

struct RerunOptions {
  Path stoker;                                       ///< this executable
  std::size_t most = 3;                              ///< reruns; one suffices if its values are equal
  std::function<void(const std::string&)> on_event;  ///< receives one line for each event
  std::function<bool()> should_stop;                 ///< polled
};

/// The largest difference of two lists of values, relative to `before`; to the absolute difference where
/// `before` is 0. REQUIRES: equal sizes.
double relative_difference(const std::vector<double>& before, const std::vector<double>& after);
/// The verdict on some reruns.
RerunVerdict judge_reruns(const std::vector<double>& before, const std::vector<std::vector<double>>& after);

/// Whether a rerun of the first seed is as close to it as two seeds of the trial may be to each other, in
/// each objective. False with fewer than two seeds.
bool is_within_seeds(const sweep::StudyTrial& trial, const std::vector<double>& after);

/// Runs the trial, or its first seed, where it ran before, as new runs in the folder `reruns` of the study.
/// NotFound for a trial without a run, Cancelled when `should_stop`, and the reason of a rerun that fails.
Result<TrialRerun> rerun_trial(const sweep::Study& study, const sweep::StudyTrial& trial,
                               const RerunOptions& options, slurm::Scheduler& scheduler);

}  // namespace stoker::trials
