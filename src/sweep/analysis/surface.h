// An objective over two parameters, as a Gaussian process sees it: for contours. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// Fewer complete trials, or values of a parameter, give no surface.
inline constexpr std::size_t kLeastForSurface = 20;

/// The expected rank of a point among the trials, averaged over the other parameters: 0 as the best trial,
/// 1 as the worst.
struct ObjectiveSurface {
  std::size_t x = 0;  ///< parameters
  std::size_t y = 0;
  std::vector<double> x_at;    ///< coordinates of the columns, in equal distances of the parameter's scale
  std::vector<double> y_at;    ///< coordinates of the rows
  std::vector<double> ranks;   ///< row by row
  std::vector<double> values;  ///< of the objective at the ranks 0, 1/8, ... 1

  double rank(std::size_t row, std::size_t column) const { return ranks[row * x_at.size() + column]; }
};

/// Learns from at most 100 trials in which both parameters are active: the best 30, and others evenly by
/// rank. Takes about 0.2 s. Nullopt with fewer than kLeastForSurface such trials.
std::optional<ObjectiveSurface> objective_surface(const Definition& definition,
                                                  std::span<const StudyTrial> trials, std::size_t objective,
                                                  std::size_t x, std::size_t y);

}  // namespace stoker::sweep
