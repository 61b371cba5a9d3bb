#include "observe/node_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "observe/gpu.h"
#include "stoker/text.h"

namespace stoker::observe {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// Whether `column` is prefix, something, suffix: "gpu3.power_w". Ranks and GPUs have a number.
bool fits(std::string_view column, std::string_view prefix, std::string_view suffix) {
  if (!column.starts_with(prefix) || !column.ends_with(suffix)) return false;
  if (column.size() < prefix.size() + suffix.size()) return false;
  const std::string_view middle = column.substr(prefix.size(), column.size() - prefix.size() - suffix.size());
  if (prefix.ends_with('.')) return !middle.empty();
  if (middle.empty()) return prefix != "rank" && prefix != "gpu";
  std::int64_t number = 0;
  return (prefix == "rank" || prefix == "gpu") && parse_number(middle, &number);
}

/// Whether a machine may have this value: files may be damaged.
bool is_plausible(double value) { return value >= 0 && value < 1e18; }

std::vector<double> combined(const record::MetricTable& samples, std::string_view prefix,
                             std::string_view suffix, bool is_mean) {
  std::vector<double> sum;
  std::vector<int> count;
  for (std::size_t c = 0; c < samples.columns.size(); ++c) {
    if (!fits(samples.columns[c], prefix, suffix)) continue;
    sum.resize(samples.rows(), 0);
    count.resize(samples.rows(), 0);
    for (std::size_t row = 0; row < samples.rows(); ++row) {
      if (!is_plausible(samples.values[c][row])) continue;
      sum[row] += samples.values[c][row];
      ++count[row];
    }
  }
  for (std::size_t row = 0; row < sum.size(); ++row) {
    if (count[row] == 0) sum[row] = kNoValue;
    if (count[row] > 0 && is_mean) sum[row] /= count[row];
  }
  return sum;
}

}  // namespace

std::vector<double> values_of(const record::MetricTable& samples, const NodeMeasure& measure) {
  std::vector<double> values = combined(samples, measure.prefix, measure.suffix, measure.is_mean);
  if (values.empty() && !measure.otherwise.empty())
    values = combined(samples, "rank", measure.otherwise, false);
  return values;
}

std::optional<MeanAndPeak> mean_and_peak(const std::vector<double>& values) {
  MeanAndPeak result{.peak = -std::numeric_limits<double>::infinity()};
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    result.mean += value;
    result.peak = std::max(result.peak, value);
    ++count;
  }
  if (count == 0) return std::nullopt;
  result.mean /= static_cast<double>(count);
  return result;
}

double total_of(const record::MetricTable& samples, const std::vector<double>& rates) {
  constexpr double kLongestGap = 120;
  const auto time = samples.column("time");
  double sum = 0;
  for (std::size_t i = 1; i < std::min(rates.size(), time.size()); ++i) {
    const double seconds = time[i] - time[i - 1];
    if (std::isfinite(rates[i]) && seconds > 0 && seconds < kLongestGap) sum += rates[i] * seconds;
  }
  return sum;
}

std::optional<double> last_value(const record::MetricTable& samples, std::string_view column) {
  const auto values = samples.column(column);
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    if (is_plausible(*value)) return *value;
  }
  return std::nullopt;
}

std::optional<double> increase_of(const record::MetricTable& samples, std::string_view column) {
  std::optional<double> before;
  double sum = 0;
  for (const double value : samples.column(column)) {
    if (!is_plausible(value)) continue;
    if (before) sum += value >= *before ? value - *before : value;
    before = value;
  }
  return before ? std::optional(sum) : std::nullopt;
}

NodeEnergy energy_of(const record::MetricTable& samples) {
  NodeEnergy energy{.cpu_j = increase_of(samples, "energy.cpu_j"),
                    .memory_j = increase_of(samples, "energy.memory_j"),
                    .node_j = increase_of(samples, "energy.node_j"),
                    .gpu_j = {}};
  for (int gpu = 0; gpu < kMaxGpus && samples.has(format("gpu{}.busy_percent", gpu)); ++gpu) {
    std::optional<double> joules = increase_of(samples, format("gpu{}.energy_j", gpu));
    if (!joules) {
      const auto power = samples.column(format("gpu{}.power_w", gpu));
      const std::vector<double> watts(power.begin(), power.end());
      if (!mean_and_peak(watts)) continue;
      joules = total_of(samples, watts);
      energy.is_gpu_integrated = true;
    }
    energy.gpu_j = energy.gpu_j.value_or(0) + *joules;
  }
  return energy;
}

std::optional<Spread> spread_of(const std::vector<std::optional<double>>& values) {
  std::optional<Spread> spread;
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i] || !std::isfinite(*values[i])) continue;
    if (!spread) spread = Spread{.lowest = i, .highest = i};
    if (*values[i] < *values[spread->lowest]) spread->lowest = i;
    if (*values[i] > *values[spread->highest]) spread->highest = i;
    sum += *values[i];
    ++count;
  }
  if (spread) spread->mean = sum / static_cast<double>(count);
  return spread;
}

}  // namespace stoker::observe
