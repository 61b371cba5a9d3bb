#include "sweep/sampler/model_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stoker::sweep {

namespace {

// The crowding distance of each member of a front: the sum over objectives of the gap between its neighbours.
std::vector<double> crowding(const std::vector<std::vector<double>>& losses,
                             const std::vector<std::size_t>& front) {
  std::vector<double> distance(front.size(), 0);
  std::vector<std::size_t> order(front.size());
  for (std::size_t objective = 0; objective < losses[front[0]].size(); ++objective) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto value = [&](std::size_t place) { return losses[front[order[place]]][objective]; };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return losses[front[a]][objective] < losses[front[b]][objective];
    });
    const double extent = value(order.size() - 1) - value(0);
    distance[order.front()] = distance[order.back()] = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i + 1 < order.size() && extent > 0; ++i)
      distance[order[i]] += (value(i + 1) - value(i - 1)) / extent;
  }
  return distance;
}

// Ranks from the best: whole fronts one after another, within a front the least crowded first.
std::vector<double> pareto_ranks(const std::vector<std::vector<double>>& losses) {
  const std::size_t count = losses.size();
  std::vector<std::size_t> dominators(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) dominators[i] += dominates(losses[j], losses[i]) ? 1 : 0;
  }
  std::vector<double> ranks(count, 0);
  std::vector<bool> is_placed(count, false);
  double rank = 0;
  while (rank < static_cast<double>(count)) {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_placed[i] && dominators[i] == 0) front.push_back(i);
    }
    const std::vector<double> distance = crowding(losses, front);
    std::vector<std::size_t> order(front.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance[a] > distance[b]; });
    for (const std::size_t place : order) ranks[front[place]] = rank++;
    for (const std::size_t member : front) is_placed[member] = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_placed[i]) continue;
      for (const std::size_t member : front) dominators[i] -= dominates(losses[member], losses[i]) ? 1 : 0;
    }
  }
  return ranks;
}

// The last finite report of a pruned trial as a loss, or nullopt. Only for the first objective.
std::optional<std::pair<std::int64_t, double>> last_report(const StudyTrial& trial, Goal goal) {
  for (auto report = trial.reports.rbegin(); report != trial.reports.rend(); ++report) {
    if (std::isfinite(report->second)) return std::pair(report->first, loss_of(report->second, goal));
  }
  return std::nullopt;
}

// to_model() for many points of a space.
class ModelScale {
 public:
  explicit ModelScale(const Space& space) {
    for (const Parameter& parameter : space.parameters()) {
      const auto* const range = std::get_if<NumberRange>(&parameter.domain);
      axes_.push_back({range, range == nullptr ? DensityInterval() : density_interval(*range)});
    }
  }
  ModelPoint at(const Coordinates& point) const {
    ModelPoint result(point);
    for (std::size_t i = 0; i < point.size(); ++i) {
      const auto& [range, interval] = axes_[i];
      if (range == nullptr || std::isnan(point[i])) continue;
      const double width = interval.high - interval.low;
      result[i] = width > 0 ? (position_of(*range, point[i]) - interval.low) / width : 0.5;
    }
    return result;
  }

 private:
  struct Axis {
    const NumberRange* range = nullptr;  // null: choices
    DensityInterval interval;
  };
  std::vector<Axis> axes_;
};

double median_loss(const std::vector<Observation>& complete) {
  if (complete.empty()) return -std::numeric_limits<double>::infinity();
  std::vector<double> losses;
  for (const Observation& observation : complete) losses.push_back(observation.loss);
  std::nth_element(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2),
                   losses.end());
  return losses[losses.size() / 2];
}

}  // namespace

ModelPoint to_model(const Space& space, const Coordinates& point) { return ModelScale(space).at(point); }

Coordinates from_model(const Space& space, const ModelPoint& point) {
  Coordinates result(point);
  for (std::size_t i = 0; i < point.size(); ++i) {
    const auto* const range = std::get_if<NumberRange>(&space.parameters()[i].domain);
    if (range == nullptr || std::isnan(point[i])) continue;
    const DensityInterval interval = density_interval(*range);
    result[i] =
        number_at(*range, interval.low + std::clamp(point[i], 0.0, 1.0) * (interval.high - interval.low));
  }
  return space.normalized(std::move(result));
}

Observations observations_of(const History& history) {
  Observations observations;
  observations.ended.reserve(history.prior.size() + history.trials.size());
  const ModelScale scale(history.space);
  const bool has_ranks = history.goals.size() > 1;
  std::vector<std::vector<double>> losses;  // with has_ranks
  std::vector<const StudyTrial*> pruned;
  const auto add_complete = [&](const StudyTrial& trial, TrialNumber number) {
    std::vector<double> own = losses_of(trial, history.goals);
    if (!std::all_of(own.begin(), own.end(), [](double loss) { return std::isfinite(loss); })) return;
    observations.ended.push_back({scale.at(trial.point), number, own[0]});
    if (has_ranks) losses.push_back(std::move(own));
  };
  for (std::size_t i = 0; i < history.prior.size(); ++i) add_complete(history.prior[i], i);
  for (const StudyTrial& trial : history.trials) {
    if (trial.state == TrialState::running) observations.running.push_back(scale.at(trial.point));
    if (trial.state == TrialState::pruned) pruned.push_back(&trial);
    if (trial.state == TrialState::complete) add_complete(trial, history.prior.size() + trial.number);
  }
  if (!losses.empty()) {
    const std::vector<double> ranks = pareto_ranks(losses);
    for (std::size_t i = 0; i < ranks.size(); ++i) observations.ended[i].loss = ranks[i];
  }
  if (!has_ranks && !pruned.empty()) {
    const double least = median_loss(observations.ended);
    for (const StudyTrial* trial : pruned) {
      const auto report = last_report(*trial, history.goals[0]);
      if (!report) continue;
      observations.ended.push_back(
          {scale.at(trial->point), history.prior.size() + trial->number, std::max(report->second, least)});
    }
    std::sort(observations.ended.begin(), observations.ended.end(),
              [](const Observation& a, const Observation& b) { return a.number < b.number; });
  }
  return observations;
}

}  // namespace stoker::sweep
