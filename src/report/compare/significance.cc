#include "report/compare/significance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace stoker::report {
namespace {

constexpr double kMaxWays = 200'000;
constexpr double kConfidence = 0.975;  // two-sided 95 %

// The regularized incomplete beta function by its continued fraction (Lentz): DLMF 8.17.22.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) /
      a;
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 / std::max(1 - (a + b) * x / (a + 1), kTiny);
  double fraction = d;
  for (int m = 1; m < 300; ++m) {
    for (const bool is_even : {true, false}) {
      const double term = is_even ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                  : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + term * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + term / c;
      c = std::abs(c) < kTiny ? kTiny : c;
      fraction *= c * d;
    }
    if (std::abs(c * d - 1) < 1e-14) break;
  }
  return front * fraction;
}

double t_distribution(double t, double freedom) {
  const double tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
  return t > 0 ? 1 - tail : tail;
}

// By bisection: a report needs no speed.
double t_quantile(double probability, double freedom) {
  double low = 0;
  double high = 1;
  while (t_distribution(high, freedom) < probability && high < 1e9) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (t_distribution(middle, freedom) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

// How many ways to choose k of n, as long as a double counts.
double ways(std::size_t n, std::size_t k) {
  double count = 1;
  for (std::size_t i = 1; i <= k; ++i) count *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return count;
}

double permutation_p(std::vector<double> all, std::size_t before) {
  const std::size_t n = all.size();
  const double total = std::accumulate(all.begin(), all.end(), 0.0);
  const auto difference = [&](double sum) {
    return std::abs((total - sum) / static_cast<double>(n - before) - sum / static_cast<double>(before));
  };
  const double observed =
      difference(std::accumulate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before), 0.0));
  const double scale =
      std::accumulate(all.begin(), all.end(), 0.0, [](double sum, double v) { return sum + std::abs(v); });
  const double least =
      observed - 1e-12 * scale;  // sums of the same values in another order differ by rounding
  std::uint64_t as_far = 0;
  std::uint64_t tried = 0;
  if (ways(n, before) <= kMaxWays) {
    std::vector<char> chosen(n, 0);
    std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(before), char{1});
    do {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += chosen[i] != 0 ? all[i] : 0;
      as_far += difference(sum) >= least ? 1 : 0;
      ++tried;
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
    return static_cast<double>(as_far) / static_cast<double>(tried);
  }
  std::mt19937_64 random(1);
  for (; tried < static_cast<std::uint64_t>(kMaxWays); ++tried) {
    for (std::size_t i = 0; i < before; ++i) std::swap(all[i], all[i + random() % (n - i)]);
    as_far += difference(std::accumulate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before),
                                         0.0)) >= least
                  ? 1
                  : 0;
  }
  // The observed division counts as one of them: p is never 0.
  return static_cast<double>(as_far + 1) / static_cast<double>(tried + 1);
}

}  // namespace

double mean_of(std::span<const double> values) {
  return values.empty()
             ? std::nan("")
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<Significance> significance(std::span<const double> before, std::span<const double> after) {
  if (before.size() < 2 || after.size() < 2) return std::nullopt;
  std::vector<double> all(before.begin(), before.end());
  all.insert(all.end(), after.begin(), after.end());
  if (!std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v); })) return std::nullopt;
  const auto error = [](std::span<const double> values) {
    return deviation_of(values) * deviation_of(values) / static_cast<double>(values.size());
  };
  const double difference = mean_of(after) - mean_of(before);
  const double variance = error(before) + error(after);
  Significance result{
      .p = permutation_p(std::move(all), before.size()), .lowest = difference, .highest = difference};
  if (variance > 0) {
    const double freedom = variance * variance /
                           (error(before) * error(before) / static_cast<double>(before.size() - 1) +
                            error(after) * error(after) / static_cast<double>(after.size() - 1));
    const double half = t_quantile(kConfidence, freedom) * std::sqrt(variance);
    result.lowest -= half;
    result.highest += half;
  }
  return result;
}

}  // namespace stoker::report
