#include "sweep/results/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stoker/text.h"

namespace stoker::sweep {

namespace {

constexpr double kNoSpread = std::numeric_limits<double>::quiet_NaN();

std::vector<double> seed_values(const SeedValues& seeds, std::size_t objective) {
  std::vector<double> values;
  for (const auto& [seed, all] : seeds) {
    if (objective < all.size()) values.push_back(all[objective]);
  }
  return values;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::vector<double> average_of(const SeedValues& seeds, SeedAverage average) {
  std::vector<double> result;
  for (std::size_t i = 0; i < seeds.begin()->second.size(); ++i) {
    const std::vector<double> values = seed_values(seeds, i);
    result.push_back(average == SeedAverage::mean ? mean_of(values) : median_of(values));
  }
  return result;
}

double spread_of(const StudyTrial& trial, std::size_t objective) {
  const std::vector<double> values = seed_values(trial.seeds, objective);
  if (values.size() < 2) return kNoSpread;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double range_of(const StudyTrial& trial, std::size_t objective) {
  const std::vector<double> values = seed_values(trial.seeds, objective);
  if (values.size() < 2) return kNoSpread;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

std::string values_text(const Definition& definition, const StudyTrial& trial) {
  std::string text;
  for (std::size_t i = 0; i < trial.values.size(); ++i) {
    text += format("{}{} {:.4g}", i > 0 ? ", " : "", definition.objectives[i].metric, trial.values[i]);
    if (const double spread = spread_of(trial, i); !std::isnan(spread)) text += format(" ± {:.2g}", spread);
  }
  return text;
}

}  // namespace stoker::sweep
