// How a study proceeds: its best values so far, its pace, why trials failed. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// Trials that have ended with a value for each objective, pruned or failed, in the order of their endings.
std::vector<const StudyTrial*> ended_trials(std::span<const StudyTrial> trials);

/// A trial that was better than all trials that ended before it.
struct Improvement {
  const StudyTrial* trial = nullptr;
  std::size_t place = 0;  ///< in ended_trials()
  double value = 0;
};
/// The improvements of one objective, the first complete trial included.
std::vector<Improvement> improvements(const Definition& definition, std::span<const StudyTrial> trials,
                                      std::size_t objective);

/// Failed trials with the same message.
struct FailureGroup {
  std::string message;
  std::vector<TrialNumber> trials;
};
/// The most frequent first.
std::vector<FailureGroup> failures(std::span<const StudyTrial> trials);

/// How fast trials end, and how long Definition::most_trials take.
struct StudyPace {
  double per_hour = std::numeric_limits<double>::quiet_NaN();      ///< of the last 50 endings; NaN: unknown
  double seconds_left = std::numeric_limits<double>::quiet_NaN();  ///< NaN: no limit, nothing runs, unknown
};
/// `now`: Unix time in seconds. Failed trials do not count.
StudyPace pace_of(const Definition& definition, std::span<const StudyTrial> trials, double now);

/// Points that were proposed and skipped because they had been tried.
std::uint64_t skipped_points(std::span<const StudyTrial> trials);

/// "lr: maximize val_acc, sampler auto, 17 complete of 50, 2 running, 1 failed, 3 points skipped".
std::string summary_text(const Definition& definition, std::span<const StudyTrial> trials);

}  // namespace stoker::sweep
