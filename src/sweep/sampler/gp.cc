#include "sweep/sampler/gp.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "sweep/sampler/gaussian_process.h"
#include "sweep/sampler/quasi_random.h"
#include "sweep/sampler/uniform.h"

namespace stoker::sweep {

namespace {

constexpr std::size_t kStartup = 8;
constexpr int kRandomCandidates = 400;
constexpr int kNearCandidates = 200;
constexpr std::size_t kCenters = 4;
constexpr std::size_t kClimbers = 6;
constexpr int kClimbingSteps = 60;

// Differences of two losses stay finite.
double limited(double loss) { return std::clamp(loss, -1e150, 1e150); }

// Standardized losses. Those above the median count by their logarithm, so that a diverged trial does not
// decide how all others are seen.
std::vector<double> targets_of(const std::vector<Observation>& observations) {
  std::vector<double> sorted;
  for (const Observation& observation : observations) sorted.push_back(limited(observation.loss));
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double unit = std::max(median - sorted.front(), 1e-300);
  std::vector<double> targets;
  for (const Observation& observation : observations) {
    const double z = (limited(observation.loss) - median) / unit;
    targets.push_back(z < 0 ? z : std::log1p(std::min(z, 1e100)));
  }
  const auto count = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / count;
  double variance = 0;
  for (const double target : targets) variance += (target - mean) * (target - mean) / count;
  const double deviation = variance > 0 ? std::sqrt(variance) : 1;
  for (double& target : targets) target = (target - mean) / deviation;
  return targets;
}

// The logarithm of the expected improvement below `best`.
double log_improvement(const Prediction& predicted, double best) {
  const double z = (best - predicted.mean) / predicted.deviation;
  const double log_density = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi);
  // Far below, density and tail cancel: the first term of their asymptotic series remains.
  if (z < -5) return std::log(predicted.deviation) + log_density - 2 * std::log(-z);
  const double tail = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return std::log(predicted.deviation) + std::log(std::exp(log_density) + z * tail);
}

// The best half and the most recent half, in order of number.
void keep_most_useful(std::vector<Observation>& observations) {
  if (observations.size() <= kMostForGp) return;
  const auto half = static_cast<std::ptrdiff_t>(kMostForGp / 2);
  std::stable_sort(observations.begin(), observations.end(),
                   [](const Observation& a, const Observation& b) { return a.loss < b.loss; });
  std::sort(observations.begin() + half, observations.end(),
            [](const Observation& a, const Observation& b) { return a.number > b.number; });
  observations.resize(kMostForGp);
  std::sort(observations.begin(), observations.end(),
            [](const Observation& a, const Observation& b) { return a.number < b.number; });
}

// Looks for the largest expected improvement among random points and points near the best trials, and climbs
// from the most promising ones.
class ImprovementSearch {
 public:
  ImprovementSearch(const Space& space, const GaussianProcess& process, double best, TrialRandom& random)
      : space_(space), process_(process), best_(best), random_(random) {}

  void add(const Coordinates& point) {
    if (space_.is_feasible(point)) candidates_.push_back(candidate(point));
  }
  void add_near(const ModelPoint& center) {
    const double distance = std::pow(10, -0.5 - 2 * random_.uniform());
    add(from_model(space_, moved(center, distance, 0.5)));
  }
  std::optional<Coordinates> climb() {
    if (candidates_.empty()) return std::nullopt;
    const auto better = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
    std::sort(candidates_.begin(), candidates_.end(), better);
    candidates_.resize(std::min(candidates_.size(), kClimbers));
    for (Candidate& current : candidates_) {
      double distance = 0.1;
      for (int step = 0; step < kClimbingSteps; ++step) {
        const Coordinates point = from_model(space_, moved(current.at, distance, 0.4));
        if (!space_.is_feasible(point)) continue;
        Candidate next = candidate(point);
        const bool is_better = next.score > current.score;
        if (is_better) current = std::move(next);
        distance *= is_better ? 1.2 : 0.93;
      }
    }
    return std::min_element(candidates_.begin(), candidates_.end(), better)->point;
  }

 private:
  struct Candidate {
    double score;
    Coordinates point;
    ModelPoint at;
  };

  Candidate candidate(const Coordinates& point) const {
    ModelPoint at = to_model(space_, point);
    return {log_improvement(process_.predict(at), best_), point, std::move(at)};
  }
  // Each parameter moves with probability `rate`, at least one does.
  ModelPoint moved(ModelPoint at, double distance, double rate) {
    const std::size_t always = random_.below(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (d != always && random_.uniform() >= rate) continue;
      const Parameter& parameter = space_.parameters()[d];
      const std::uint64_t count = value_count(parameter).value_or(0);
      if (std::holds_alternative<Choices>(parameter.domain)) {
        at[d] = static_cast<double>(random_.below(count));
      } else if (!std::isnan(at[d])) {
        // At least to the next value.
        const double step = count > 1 ? std::max(distance, 0.7 / static_cast<double>(count)) : distance;
        at[d] = std::clamp(at[d] + step * random_.normal(), 0.0, 1.0);
      }
    }
    return at;
  }

  const Space& space_;
  const GaussianProcess& process_;
  double best_;
  TrialRandom& random_;
  std::vector<Candidate> candidates_;
};

std::optional<Coordinates> startup_point(TrialNumber number, std::uint64_t seed, const Space& space,
                                         TrialRandom& random) {
  const std::size_t dimensions = space.parameters().size();
  if (dimensions <= kMostDimensions) {
    Coordinates point =
        from_unit_cube(space, scrambled_sobol_point(number, static_cast<unsigned>(dimensions), seed));
    if (space.is_feasible(point)) return point;
  }
  return random_point(space, random);
}

}  // namespace

std::optional<Coordinates> gp_point(TrialNumber number, std::uint64_t seed, const History& history) {
  const Space& space = history.space;
  TrialRandom random(seed, number);
  Observations known = observations_of(history);
  if (known.ended.size() < kStartup || space.parameters().empty())
    return startup_point(number, seed, space, random);
  keep_most_useful(known.ended);
  const std::vector<double> targets = targets_of(known.ended);
  std::vector<ModelPoint> points;
  for (const Observation& observation : known.ended) points.push_back(observation.point);
  GaussianProcess process(space);
  process.fit(points, targets);
  process.add_expected(known.running);

  ImprovementSearch search(space, process, *std::min_element(targets.begin(), targets.end()), random);
  for (int i = 0; i < kRandomCandidates; ++i) {
    if (const auto point = random_point(space, random)) search.add(*point);
  }
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return targets[a] < targets[b]; });
  const std::size_t centers = std::min(kCenters, order.size());
  for (int i = 0; i < kNearCandidates; ++i)
    search.add_near(points[order[static_cast<std::size_t>(i) % centers]]);
  return search.climb();
}

}  // namespace stoker::sweep
