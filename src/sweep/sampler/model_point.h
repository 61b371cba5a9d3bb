// Points as the models of a study see them, and the losses they learn from. Pure functions.
#pragma once

#include <vector>

#include "sweep/sampler/sampler.h"

namespace stoker::sweep {

/// One number for each parameter: the position in its interval scaled to 0..1, the index of a choice, or
/// kInactive.
using ModelPoint = std::vector<double>;

ModelPoint to_model(const Space& space, const Coordinates& point);
/// Normalized; positions outside 0..1 are clamped.
Coordinates from_model(const Space& space, const ModelPoint& point);

/// A trial that a model learns from.
struct Observation {
  ModelPoint point;
  TrialNumber number = 0;  ///< of all observations from the oldest
  double loss = 0;         ///< smaller is better
};

/// What a study knows, sorted by number.
struct Observations {
  std::vector<Observation> ended;  ///< complete or pruned
  std::vector<ModelPoint> running;
};

/// A complete trial's loss is its value, negated if it is maximized. With several objectives it is a rank:
/// by non-dominated front, the least crowded first (NSGA-II, Deb et al., 2002). A pruned trial's loss is its
/// last report, but at least the median of the complete ones. Left out are failed trials, values that are not
/// finite, and pruned trials of several objectives.
Observations observations_of(const History& history);

}  // namespace stoker::sweep
