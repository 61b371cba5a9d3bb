#include "sweep/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>

#include "base/json/json.h"

namespace stoker::sweep {

namespace {

constexpr double kBestShare = 0.1;
constexpr std::size_t kMostCells = 50;
constexpr double kPriorWeight = 1;
// With it, 90 % of a kernel lie within its own cell.
constexpr double kLeastWidth = 0.5 / 1.64;
constexpr double kFloor = 1e-12;

using Trials = std::vector<const StudyTrial*>;
/// By cell of a parameter: trials, or their density.
using Cells = std::vector<double>;

// The values of a parameter, divided into cells.
class CellGrid {
 public:
  explicit CellGrid(const Parameter& parameter) {
    if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
      count_ = choices->values.size();
      return;
    }
    range_ = std::get_if<NumberRange>(&parameter.domain);
    count_ = std::min(kMostCells, natural_count());
    low_ = position(range_->low);
    width_ = count_ > 1 ? (position(range_->high) - low_) / static_cast<double>(count_ - 1) : 1;
  }

  std::size_t count() const { return count_; }
  bool is_choice() const { return range_ == nullptr; }
  // A number in the middle between two cells belongs to the lower one.
  std::size_t cell_of(double coordinate) const {
    if (is_choice()) return static_cast<std::size_t>(coordinate);
    const double cell = std::ceil((position(coordinate) - low_) / width_ - 0.5);
    return static_cast<std::size_t>(std::clamp(cell, 0.0, static_cast<double>(count_ - 1)));
  }

 private:
  double position(double number) const { return range_->is_log ? std::log(number) : number; }
  std::size_t natural_count() const {
    const double extent = range_->high - range_->low;
    double count = static_cast<double>(kMostCells);
    if (extent <= 0)
      count = 1;
    else if (range_->is_integer && range_->is_log)
      count = std::ceil(std::log2(extent + 1)) + 1;
    else if (range_->is_integer || range_->step > 0)
      count = std::round(extent / (range_->step > 0 ? range_->step : 1)) + 1;
    return static_cast<std::size_t>(std::min(count, static_cast<double>(kMostCells)));
  }

  const NumberRange* range_ = nullptr;
  std::size_t count_ = 1;
  double low_ = 0;
  double width_ = 1;
};

Cells counts_of(const CellGrid& grid, std::size_t parameter, const Trials& trials) {
  Cells counts(grid.count(), 0);
  for (const StudyTrial* trial : trials) counts[grid.cell_of(trial->point[parameter])] += 1;
  return counts;
}

// Each choice that occurs has its own kernel, which spreads a little over the other ones.
Cells choice_density(const Cells& counts) {
  const auto choices = static_cast<double>(counts.size());
  const auto occurring = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; }));
  const double spread = kPriorWeight / (occurring + 1);
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double weight = total + kPriorWeight;
  const double kernel_sum = 1 + choices * spread;
  Cells density(counts.size(), kPriorWeight / weight / choices + total / weight * spread / kernel_sum);
  for (std::size_t i = 0; i < counts.size(); ++i) density[i] += counts[i] / weight / kernel_sum;
  return density;
}

double normal_tail(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// Adds a normal kernel around `center`, cut off at both ends and integrated over each cell.
void add_kernel(Cells& density, double center, double width, double weight) {
  const auto below = [&](double cell) { return normal_tail((cell - 0.5 - center) / width); };
  const double whole = below(static_cast<double>(density.size())) - below(0);
  for (std::size_t i = 0; i < density.size(); ++i) {
    const auto cell = static_cast<double>(i);
    density[i] += weight * (below(cell + 1) - below(cell)) / whole;
  }
}

// Scott's rule (Multivariate Density Estimation, 1992) with the weighted spread or the quartiles.
double kernel_width(const Cells& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) mean += counts[i] * static_cast<double>(i) / total;
  for (std::size_t i = 0; i < counts.size(); ++i)
    square += counts[i] * std::pow(static_cast<double>(i) - mean, 2);
  const double deviation = std::sqrt(square / std::max(1.0, total - 1));
  const double low_rank = std::floor(total / 4), high_rank = std::floor(total * 3 / 4);
  std::optional<double> low;
  double high = 0, sum = 0;
  bool is_found = false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    sum += counts[i];
    if (!low && sum >= low_rank) low = static_cast<double>(i);
    if (!is_found) high = static_cast<double>(i);
    is_found = is_found || sum > high_rank;
  }
  const double spread = std::min((high - low.value_or(0)) / 1.34, deviation);
  return std::max(1.059 * spread * std::pow(total, -0.2), kLeastWidth);
}

Cells number_density(const Cells& counts) {
  const auto cells = static_cast<double>(counts.size());
  const double weight = std::accumulate(counts.begin(), counts.end(), 0.0) + kPriorWeight;
  const double width = kernel_width(counts);
  Cells density(counts.size(), 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) add_kernel(density, static_cast<double>(i), width, counts[i] / weight);
  }
  add_kernel(density, (cells - 1) / 2, cells, kPriorWeight / weight);
  return density;
}

// The Pearson divergence of the best trials' density from that of all trials.
double divergence(const Parameter& parameter, std::size_t index, const Trials& best, const Trials& all) {
  const CellGrid grid(parameter);
  if (grid.count() < 2) return 0;
  const auto density = [&](const Trials& trials) {
    const Cells counts = counts_of(grid, index, trials);
    return grid.is_choice() ? choice_density(counts) : number_density(counts);
  };
  const Cells of_best = density(best), of_all = density(all);
  double sum = 0;
  for (std::size_t i = 0; i < of_all.size(); ++i) {
    const double whole = of_all[i] + kFloor;
    sum += whole * std::pow((of_best[i] + kFloor) / whole - 1, 2);
  }
  return sum;
}

Trials usable(std::span<const StudyTrial> trials) {
  Trials complete;
  for (const StudyTrial& trial : trials) {
    if (trial.state != TrialState::complete) continue;
    if (std::all_of(trial.values.begin(), trial.values.end(), [](double v) { return std::isfinite(v); }))
      complete.push_back(&trial);
  }
  return complete;
}

Trials best_of(const Trials& all, std::size_t objective, Goal goal) {
  std::vector<double> losses;
  for (const StudyTrial* trial : all) losses.push_back(loss_of(trial->values[objective], goal));
  const auto last =
      static_cast<std::ptrdiff_t>(std::ceil(kBestShare * static_cast<double>(losses.size()))) - 1;
  std::nth_element(losses.begin(), losses.begin() + last, losses.end());
  const double limit = losses[static_cast<std::size_t>(last)];
  Trials best;
  for (const StudyTrial* trial : all) {
    if (loss_of(trial->values[objective], goal) <= limit) best.push_back(trial);
  }
  return best;
}

Trials active(const Trials& trials, std::size_t parameter) {
  Trials result;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(result),
               [&](const StudyTrial* trial) { return !std::isnan(trial->point[parameter]); });
  return result;
}

// The divergence where the parameter is active, weighted by how much more often it is so in the best trials.
double raw_importance(const Parameter& parameter, std::size_t index, const Trials& best, const Trials& all) {
  const Trials active_best = active(best, index), active_all = active(all, index);
  if (active_best.empty() || active_all.size() < 2) return 0;
  const double best_share = static_cast<double>(active_best.size()) / static_cast<double>(best.size());
  const double share = static_cast<double>(active_all.size()) / static_cast<double>(all.size());
  return best_share * best_share / share * divergence(parameter, index, active_best, active_all);
}

}  // namespace

std::vector<ParameterImportance> importances(const Definition& definition, std::span<const StudyTrial> trials,
                                             std::size_t objective) {
  const Trials all = usable(trials);
  if (all.size() < kLeastForImportance) return {};
  const Trials best = best_of(all, objective, definition.objectives[objective].goal);
  if (best.size() == all.size()) return {};
  const std::vector<Parameter>& parameters = definition.space.parameters();
  std::vector<ParameterImportance> result;
  double sum = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    result.push_back({i, raw_importance(parameters[i], i, best, all)});
    sum += result.back().share;
  }
  if (sum <= 0) return {};
  for (ParameterImportance& each : result) each.share /= sum;
  std::stable_sort(
      result.begin(), result.end(),
      [](const ParameterImportance& a, const ParameterImportance& b) { return a.share > b.share; });
  return result;
}

std::string json_importances(const Definition& definition, std::span<const StudyTrial> trials) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    nlohmann::ordered_json shares = nlohmann::ordered_json::object();
    for (const ParameterImportance& each : importances(definition, trials, i))
      shares[definition.space.parameters()[each.parameter].name] = each.share;
    json[definition.objectives[i].metric] = shares;
  }
  return json_text(json);
}

}  // namespace stoker::sweep
