// A study as its report shows it: ranked trials, the trials that plots draw, importances. Points into the
// study.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sweep/analysis/importance.h"
#include "sweep/results/ranking.h"
#include "sweep/study/study.h"

namespace stoker::report::study {

/// The most objectives that have charts.
inline constexpr std::size_t kMostObjectives = 3;

using TrialList = std::vector<const sweep::StudyTrial*>;

struct StudyView {
  const sweep::Definition& definition;
  std::span<const sweep::StudyTrial> trials;
  sweep::TrialCounts counts;
  TrialList ranked;  ///< all trials, the best first
  TrialList best;    ///< the Pareto front of several objectives
  TrialList drawn;   ///< the complete trials that scatter plots show, the best first
  std::vector<std::vector<sweep::ParameterImportance>> importances;  ///< by objective; may be empty

  std::size_t objectives() const { return importances.size(); }
  std::span<const sweep::StudyTrial* const> complete() const {
    return std::span(ranked).subspan(0, counts.complete);
  }
  /// The parameters from the most important one for an objective, or in their order.
  std::vector<std::size_t> parameters_by_importance(std::size_t objective) const;
};

/// REQUIRES: the study outlives the view.
StudyView view_of(const sweep::Study& study);

/// `count` of a ranked list, or all: the best fifth of them, and others in even distances.
TrialList best_and_evenly(std::span<const sweep::StudyTrial* const> ranked, std::size_t count);
/// `count` of `list` in even distances, or all.
TrialList evenly(std::span<const sweep::StudyTrial* const> list, std::size_t count);

/// "0.9342", "1.2e+09".
std::string four_digits(double value);

/// "lr: best val_acc 0.93 in trial 17 of 50 complete ones".
std::string study_sentence(const StudyView& view);

}  // namespace stoker::report::study
