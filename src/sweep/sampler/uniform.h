// Uniform points of a space. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "sweep/sampler/trial_random.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

/// Tries to satisfy the constraints before a proposal fails.
inline constexpr int kMostTries = 10'000;

/// The point at a position of the unit cube: uniform in each parameter's interval. Its constraints may not
/// hold.
Coordinates from_unit_cube(const Space& space, const std::vector<double>& unit);

/// A random feasible point, or nullopt after kMostTries.
std::optional<Coordinates> random_point(const Space& space, TrialRandom& random);

}  // namespace stoker::sweep
