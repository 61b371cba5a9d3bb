// The trials of a study in the order of their results. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// Complete trials, the best first; equal ones by number. With several objectives only the Pareto
/// front: trials that no other trial dominates, by their first value.
std::vector<const StudyTrial*> best_trials(const Definition& definition, std::span<const StudyTrial> trials);

/// The complete trials as best_trials(), then pruned ones from the furthest, running and failed ones.
std::vector<const StudyTrial*> ranked_trials(const Definition& definition,
                                             std::span<const StudyTrial> trials);

/// Trials by state.
struct TrialCounts {
  std::size_t complete = 0;
  std::size_t pruned = 0;
  std::size_t running = 0;
  std::size_t failed = 0;
};
TrialCounts count_trials(std::span<const StudyTrial> trials);

}  // namespace stoker::sweep
