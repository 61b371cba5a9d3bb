#include "sweep/results/ranking.h"

#include <algorithm>
#include <tuple>

namespace stoker::sweep {

namespace {

std::vector<const StudyTrial*> complete_by_value(const Definition& definition,
                                                 std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> complete;
  for (const StudyTrial& trial : trials) {
    if (trial.state == TrialState::complete) complete.push_back(&trial);
  }
  const Goal goal = definition.objectives[0].goal;
  std::stable_sort(complete.begin(), complete.end(), [&](const StudyTrial* a, const StudyTrial* b) {
    return loss_of(a->values[0], goal) < loss_of(b->values[0], goal);
  });
  return complete;
}

}  // namespace

std::vector<const StudyTrial*> best_trials(const Definition& definition, std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> complete = complete_by_value(definition, trials);
  if (definition.objectives.size() == 1) return complete;
  const std::vector<Goal> goals = definition.goals();
  std::vector<std::vector<double>> losses;
  for (const StudyTrial* trial : complete) losses.push_back(losses_of(*trial, goals));
  std::vector<const StudyTrial*> front;
  for (std::size_t i = 0; i < complete.size(); ++i) {
    if (std::none_of(losses.begin(), losses.end(),
                     [&](const auto& other) { return dominates(other, losses[i]); }))
      front.push_back(complete[i]);
  }
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
