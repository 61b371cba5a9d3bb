// The runs of a sweep's trials: a run for each attempt at a trial, in the folder `runs` of the study. The
// name of a run is "<study>-<trial>", or "<study>-<trial>.<attempt>" from the second attempt on, so that a
// driver that was killed finds its runs again. With seeds, each seed of a trial has runs and attempts:
// "<study>-<trial>-s<seed>[.<attempt>]". Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"
#include "sweep/study/study.h"

namespace stoker::trials {

/// An attempt at a trial, or at one seed of it.
struct TrialAttempt {
  sweep::TrialNumber number = 0;
  std::uint32_t attempt = 0;
  std::optional<std::uint64_t> seed = {};

  friend auto operator<=>(const TrialAttempt&, const TrialAttempt&) = default;
};

/// The folder of the runs.
Path runs_folder(const sweep::Study& study);
/// The name of its run: at most 64 letters, as a job file allows; the study's name is shortened for that.
std::string run_name(std::string_view study, TrialAttempt trial);
/// The runs by their trials. Belongs to one thread.
class TrialRuns {
 public:
  explicit TrialRuns(const sweep::Study& study);

  /// Looks for new runs. The next call retries runs that cannot be opened yet.
  Status refresh();
  /// The run of an attempt, or null. Of several runs, of a driver that was killed while it started one, the
  /// newest.
  const record::RunFolder* find(TrialAttempt trial) const;
  /// The last attempt at a seed that has a run; the first attempt without one.
  TrialAttempt last_attempt(sweep::TrialNumber number, std::uint64_t seed) const;
  void add(TrialAttempt trial, record::RunFolder run);
  /// Removes a run that never started, with its folder.
  void discard(TrialAttempt trial);
  const std::map<TrialAttempt, record::RunFolder>& all() const { return runs_; }

 private:
  std::string study_;
  Path folder_;
  std::set<std::string, std::less<>> known_;
  std::map<TrialAttempt, record::RunFolder> runs_;
};

/// The settings of a trial for its job file: "params.lr=0.1". A parameter without a dot belongs to `params`.
std::vector<std::string> trial_settings(const sweep::Assignment& values);

}  // namespace stoker::trials
