#include "sweep/trial.h"

namespace stoker::sweep {

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    is_better = is_better || a[i] < b[i];
  }
  return is_better;
}

std::vector<double> losses_of(const StudyTrial& trial, std::span<const Goal> goals) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < goals.size(); ++i) losses.push_back(loss_of(trial.values[i], goals[i]));
  return losses;
}

}  // namespace stoker::sweep
