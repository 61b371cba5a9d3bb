// An axis of a plot: the place of a value, from 0 to 1, and its labels. Values; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sweep/space/space.h"
#include "sweep/trial.h"

namespace stoker::report::study {

/// A label beside its place on an axis.
struct ScaleTick {
  double fraction = 0;
  std::string label;
};

/// Numbers, equally spaced or by their logarithm, or categories.
class Scale {
 public:
  enum class Spacing { linear, logarithmic };

  /// From `low` to `high`, with a small margin at both ends. REQUIRES: finite; `low` > 0 for a logarithm.
  static Scale numbers(double low, double high, Spacing spacing);
  static Scale categories(std::vector<std::string> names);
  /// The values of a parameter.
  static Scale of(const sweep::Parameter& parameter);
  /// Values of an objective. By the logarithm over a factor of 50. Values that are much worse than the rest
  /// are left out of its range: fraction() puts them at its end.
  static Scale of_values(std::span<const double> values, sweep::Goal goal);

  /// Between 0 and 1. Values outside the range are at its ends; NaN stays.
  double fraction(double value) const;
  bool contains(double value) const;
  /// About `wanted` labels.
  std::vector<ScaleTick> ticks(std::size_t wanted) const;
  /// The share of the axis that a category has, or 0.
  double category_width() const;

 private:
  double position(double value) const;

  std::vector<std::string> names_;
  Spacing spacing_ = Spacing::linear;
  double low_ = 0;  // as positions
  double high_ = 1;
};

}  // namespace stoker::report::study
