// How much each parameter decides whether a trial is among the best: PED-ANOVA. Watanabe et al., IJCAI 2023
// (arXiv 2304.10255), extended to conditional parameters as in arXiv 2601.20800. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// From fewer complete trials, importances are not known.
inline constexpr std::size_t kLeastForImportance = 20;

/// A parameter and its share of all importances, which add up to 1.
struct ParameterImportance {
  std::size_t parameter = 0;  ///< its index in the space
  double share = 0;
};

/// For one objective, the most important parameter first. The best tenth of the complete trials is compared
/// with all of them. A conditional parameter counts where it is active. Empty with fewer than
/// kLeastForImportance complete trials of finite values, and when nothing differs between them.
std::vector<ParameterImportance> importances(const Definition& definition, std::span<const StudyTrial> trials,
                                             std::size_t objective);

/// {metric: {parameter: share}}.
std::string json_importances(const Definition& definition, std::span<const StudyTrial> trials);

}  // namespace stoker::sweep
