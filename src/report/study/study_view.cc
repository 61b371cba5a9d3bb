#include "report/study/study_view.h"

#include <algorithm>
#include <numeric>

#include "base/language/counted.h"

namespace stoker::report::study {

namespace {

constexpr std::size_t kMostDrawn = 1000;

}  // namespace

std::vector<std::size_t> StudyView::parameters_by_importance(std::size_t objective) const {
  std::vector<std::size_t> order;
  for (const sweep::ParameterImportance& each : importances[objective]) order.push_back(each.parameter);
  if (!order.empty()) return order;
  order.resize(definition.space.parameters().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

TrialList evenly(std::span<const sweep::StudyTrial* const> list, std::size_t count) {
  TrialList result;
  const std::size_t chosen = std::min(count, list.size());
  for (std::size_t i = 0; i < chosen; ++i) result.push_back(list[i * list.size() / chosen]);
  return result;
}

TrialList best_and_evenly(std::span<const sweep::StudyTrial* const> ranked, std::size_t count) {
  const std::size_t best = std::min(count / 5, ranked.size());
  TrialList result(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(best));
  for (const sweep::StudyTrial* trial : evenly(ranked.subspan(best), count - best)) result.push_back(trial);
  return result;
}

StudyView view_of(const sweep::Study& study) {
  const sweep::Definition& definition = study.definition();
  StudyView view{definition, study.trials(), sweep::count_trials(study.trials()), {}, {}, {}, {}};
  view.ranked = sweep::ranked_trials(definition, view.trials);
  view.best = sweep::best_trials(definition, view.trials);
  view.drawn = best_and_evenly(view.complete(), kMostDrawn);
  for (std::size_t i = 0; i < std::min(kMostObjectives, definition.objectives.size()); ++i)
    view.importances.push_back(sweep::importances(definition, view.trials, i));
  return view;
}

std::string four_digits(double value) { return format("{:.4g}", value); }

std::string study_sentence(const StudyView& view) {
  const std::string& name = view.definition.name;
  if (view.best.empty()) return format("{}: no trial is complete", name);
  const std::string trials = counted(view.counts.complete, "complete trial");
  if (view.definition.objectives.size() > 1)
    return format("{}: a Pareto front of {} among {}", name, counted(view.best.size(), "trial"), trials);
  return format("{}: best {} {} in trial {}, of {}", name, printable(view.definition.objectives[0].metric),
                four_digits(view.best[0]->values[0]), view.best[0]->number, trials);
}

}  // namespace stoker::report::study
