#include "sweep/analysis/surface.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sweep/sampler/gaussian_process.h"
#include "sweep/sampler/model_point.h"

namespace stoker::sweep {

namespace {

constexpr std::size_t kMostLearned = 100;
constexpr std::size_t kBestLearned = 30;
constexpr std::size_t kBackground = 16;
constexpr std::size_t kColumns = 32;
constexpr std::size_t kRows = 24;
constexpr std::size_t kQuantiles = 8;

struct RankedTrial {
  const StudyTrial* trial;
  double rank;
};

// Sorted from the best; equal values have the mean of their ranks.
std::vector<RankedTrial> by_rank(std::vector<const StudyTrial*> trials, std::size_t objective, Goal goal) {
  const auto loss = [&](const StudyTrial* trial) { return loss_of(trial->values[objective], goal); };
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const StudyTrial* a, const StudyTrial* b) { return loss(a) < loss(b); });
  std::vector<RankedTrial> ranked;
  const double last = static_cast<double>(trials.size()) - 1;
  for (std::size_t begin = 0; begin < trials.size();) {
    std::size_t end = begin;
    while (end < trials.size() && loss(trials[end]) == loss(trials[begin])) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranked.push_back({trials[i], mean / last});
    begin = end;
  }
  return ranked;
}

// `count` of the numbers from `begin` to `end`, in even distances.
std::vector<std::size_t> evenly(std::size_t begin, std::size_t end, std::size_t count) {
  std::vector<std::size_t> places;
  count = std::min(count, end - begin);
  for (std::size_t i = 0; i < count; ++i) places.push_back(begin + i * (end - begin) / count);
  return places;
}

std::vector<RankedTrial> learned_trials(const std::vector<RankedTrial>& ranked) {
  if (ranked.size() <= kMostLearned) return ranked;
  std::vector<RankedTrial> learned(ranked.begin(), ranked.begin() + kBestLearned);
  for (const std::size_t place : evenly(kBestLearned, ranked.size(), kMostLearned - kBestLearned))
    learned.push_back(ranked[place]);
  return learned;
}

std::vector<double> axis_of(const Parameter& parameter, std::size_t most) {
  const auto values = value_count(parameter);
  const std::size_t count = values && *values <= most ? static_cast<std::size_t>(*values) : most;
  std::vector<double> at;
  const auto* const range = std::get_if<NumberRange>(&parameter.domain);
  for (std::size_t i = 0; i < count; ++i) {
    if (range == nullptr) {
      at.push_back(static_cast<double>(i));
      continue;
    }
    const DensityInterval interval = density_interval(*range);
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    at.push_back(number_at(*range, interval.low + part * (interval.high - interval.low)));
  }
  return at;
}

// A Gaussian process over ranks.
class RankModel {
 public:
  RankModel(const Space& space, const std::vector<RankedTrial>& learned) : space_(space), process_(space) {
    std::vector<ModelPoint> points;
    std::vector<double> targets;
    const auto count = static_cast<double>(learned.size());
    for (const RankedTrial& each : learned) mean_ += each.rank / count;
    double variance = 0;
    for (const RankedTrial& each : learned) variance += (each.rank - mean_) * (each.rank - mean_) / count;
    deviation_ = variance > 0 ? std::sqrt(variance) : 1;
    for (const RankedTrial& each : learned) {
      points.push_back(to_model(space, each.trial->point));
      targets.push_back((each.rank - mean_) / deviation_);
    }
    process_.fit(std::move(points), std::move(targets));
  }
  double rank(const Coordinates& point) const {
    const double mean = process_.predict(to_model(space_, space_.normalized(point))).mean;
    return std::clamp(mean_ + deviation_ * mean, 0.0, 1.0);
  }

 private:
  const Space& space_;
  GaussianProcess process_;
  double mean_ = 0;
  double deviation_ = 1;
};

std::vector<double> quantiles(const std::vector<RankedTrial>& ranked, std::size_t objective) {
  std::vector<double> values;
  for (std::size_t i = 0; i <= kQuantiles; ++i)
    values.push_back(ranked[i * (ranked.size() - 1) / kQuantiles].trial->values[objective]);
  return values;
}

}  // namespace

std::optional<ObjectiveSurface> objective_surface(const Definition& definition,
                                                  std::span<const StudyTrial> trials, std::size_t objective,
                                                  std::size_t x, std::size_t y) {
  std::vector<const StudyTrial*> usable;
  for (const StudyTrial& trial : trials) {
    if (trial.state == TrialState::complete && std::isfinite(trial.values[objective]) &&
        !std::isnan(trial.point[x]) && !std::isnan(trial.point[y]))
      usable.push_back(&trial);
  }
  const std::vector<Parameter>& parameters = definition.space.parameters();
  ObjectiveSurface surface{x, y, axis_of(parameters[x], kColumns), axis_of(parameters[y], kRows), {}, {}};
  if (usable.size() < kLeastForSurface || surface.x_at.size() < 2 || surface.y_at.size() < 2)
    return std::nullopt;
  const std::vector<RankedTrial> ranked =
      by_rank(std::move(usable), objective, definition.objectives[objective].goal);
  const std::vector<RankedTrial> learned = learned_trials(ranked);
  const RankModel model(definition.space, learned);
  const std::vector<std::size_t> background = evenly(0, learned.size(), kBackground);
  for (const double row : surface.y_at) {
    for (const double column : surface.x_at) {
      double sum = 0;
      for (const std::size_t place : background) {
        Coordinates point = learned[place].trial->point;
        point[x] = column;
        point[y] = row;
        sum += model.rank(point);
      }
      surface.ranks.push_back(sum / static_cast<double>(background.size()));
    }
  }
  surface.values = quantiles(ranked, objective);
  return surface;
}

}  // namespace stoker::sweep
