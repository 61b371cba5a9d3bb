// Whether two groups of values differ by more than chance. Pure functions.
#pragma once

#include <optional>
#include <span>

namespace stoker::report {

double mean_of(std::span<const double> values);
/// The standard deviation with n - 1; 0 for fewer than two values.
double deviation_of(std::span<const double> values);

struct Significance {
  /// Of the permutation test of the difference in means, two-sided: how many of all ways to divide the values
  /// among the groups differ at least as much. Exact up to 200 000 ways, else from that many random ones of a
  /// fixed seed.
  double p = 1;
  double lowest = 0;  ///< of the 95 % interval of `after` - `before` (Welch's t)
  double highest = 0;

  /// The interval contains 0. It decides, because p cannot be small for few values: three on each side divide
  /// in 20 ways.
  bool may_be_chance() const { return lowest <= 0 && highest >= 0; }
};

/// Nothing with fewer than two values on a side, or a value that is not finite.
std::optional<Significance> significance(std::span<const double> before, std::span<const double> after);

}  // namespace stoker::report
