// The tree-structured Parzen estimator: one density over all parameters of the good trials and one of the
// others. The proposal is the candidate, drawn from the good density, with the largest ratio of the two.
// Bergstra et al., NeurIPS 2011; components as in Watanabe, arXiv:2304.11127. Pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "sweep/sampler/sampler.h"

namespace stoker::sweep {

/// Trials that are random before a model proposes.
inline constexpr std::size_t kStartupTrials = 10;

/// Random until kStartupTrials have ended. Running trials count as bad ones, so that processes that ask at
/// the same time get different points. Nullopt if no feasible point was found.
std::optional<Coordinates> tpe_point(TrialNumber number, std::uint64_t seed, const History& history);

}  // namespace stoker::sweep
