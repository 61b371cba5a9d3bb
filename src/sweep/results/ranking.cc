#include "sweep/results/ranking.h"

#include <algorithm>
#include <tuple>

namespace stoker::sweep {

namespace {

// Smaller is better.
double loss_of(const Definition& definition, const StudyTrial& trial, std::size_t objective) {
  const double value = trial.values[objective];
  return definition.objectives[objective].goal == Goal::minimize ? value : -value;
}

bool dominates(const Definition& definition, const StudyTrial& a, const StudyTrial& b) {
  bool is_better = false;
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    const double difference = loss_of(definition, a, i) - loss_of(definition, b, i);
    if (difference > 0) return false;
    is_better = is_better || difference < 0;
  }
  return is_better;
}

std::vector<const StudyTrial*> complete_by_value(const Definition& definition,
                                                 std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> complete;
  for (const StudyTrial& trial : trials) {
    if (trial.state == TrialState::complete) complete.push_back(&trial);
  }
  std::stable_sort(complete.begin(), complete.end(), [&](const StudyTrial* a, const StudyTrial* b) {
    return loss_of(definition, *a, 0) < loss_of(definition, *b, 0);
  });
  return complete;
}

}  // namespace

std::vector<const StudyTrial*> best_trials(const Definition& definition, std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> complete = complete_by_value(definition, trials);
  if (definition.objectives.size() == 1) return complete;
  std::vector<const StudyTrial*> front;
  std::copy_if(complete.begin(), complete.end(), std::back_inserter(front), [&](const StudyTrial* trial) {
    return std::none_of(complete.begin(), complete.end(),
                        [&](const StudyTrial* other) { return dominates(definition, *other, *trial); });
  });
  return front;
}

std::vector<const StudyTrial*> ranked_trials(const Definition& definition,
                                             std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> ranked = complete_by_value(definition, trials);
  const auto complete = static_cast<std::ptrdiff_t>(ranked.size());
  for (const StudyTrial& trial : trials) {
    if (trial.state != TrialState::complete) ranked.push_back(&trial);
  }
  const auto key = [](const StudyTrial* trial) {
    const int group = trial->state == TrialState::pruned ? 0 : trial->state == TrialState::running ? 1 : 2;
    const std::int64_t step = trial->reports.empty() ? 0 : trial->reports.rbegin()->first;
    return std::tuple(group, group == 0 ? -step : 0, trial->number);
  };
  std::sort(ranked.begin() + complete, ranked.end(),
            [&](const StudyTrial* a, const StudyTrial* b) { return key(a) < key(b); });
  return ranked;
}

TrialCounts count_trials(std::span<const StudyTrial> trials) {
  TrialCounts counts;
  for (const StudyTrial& trial : trials) {
    counts.complete += trial.state == TrialState::complete ? 1 : 0;
    counts.pruned += trial.state == TrialState::pruned ? 1 : 0;
    counts.running += trial.state == TrialState::running ? 1 : 0;
    counts.failed += trial.state == TrialState::failed ? 1 : 0;
  }
  return counts;
}

}  // namespace stoker::sweep
