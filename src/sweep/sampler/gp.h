// Bayesian optimization: the point with the largest expected improvement under a Gaussian process. It needs
// the fewest trials of all samplers here, and time that grows with their cube. Jones et al., J. Global
// Optimization 13 (1998). Pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "sweep/sampler/sampler.h"

namespace stoker::sweep {

/// The most observations that a Gaussian process learns from: with them a proposal takes about 0.1 s.
inline constexpr std::size_t kMostForGp = 150;

/// A point of a Sobol sequence until 8 trials have ended. With over kMostForGp observations it learns from
/// the best and the most recent of them. Running trials count with the value that is expected of them.
/// Nullopt if no feasible point was found.
std::optional<Coordinates> gp_point(TrialNumber number, std::uint64_t seed, const History& history);

}  // namespace stoker::sweep
