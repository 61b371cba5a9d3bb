#include "sweep/sampler/tpe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "sweep/sampler/model_point.h"
#include "sweep/sampler/uniform.h"

namespace stoker::sweep {

namespace {

// Fewer with many kernels, whose number decides the time of a candidate.
constexpr std::size_t kMostCandidates = 64;
constexpr std::size_t kLeastCandidates = 20;
constexpr std::size_t kKernelsOfMost = 250;
constexpr double kGoodShare = 0.1;
constexpr std::size_t kMostGood = 25;
// Kernels this recent have full weight; older ones fade.
constexpr std::size_t kRecent = 25;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The share of a normal distribution between two numbers of standard deviations.
double share_between(double low, double high) {
  constexpr double kAll = 9;  // from here on it is 1 in floating point
  return low < -kAll && high > kAll ? 1 : normal_cdf(high) - normal_cdf(low);
}

// A number of a column, and its row.
struct Cell {
  std::uint64_t key = 0;  // has the order of the numbers
  std::uint32_t row = 0;
};

std::uint64_t key_of(double number) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(number + 0.0);  // -0 is 0
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double number_of(std::uint64_t key) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  return std::bit_cast<double>((key & kSign) != 0 ? key ^ kSign : ~key);
}

// By key, and rows of equal keys in their order. By digits from the last one on, because comparisons of
// thousands of numbers in no order are mispredicted branches.
void sort_cells(std::vector<Cell>& cells) {
  constexpr unsigned kDigits = 8;
  std::array<std::array<std::uint32_t, 256>, kDigits> counts{};
  for (const Cell& cell : cells) {
    for (unsigned digit = 0; digit < kDigits; ++digit) ++counts[digit][(cell.key >> (8 * digit)) & 0xFF];
  }
  std::vector<Cell> other(cells.size());
  for (unsigned digit = 0; digit < kDigits && !cells.empty(); ++digit) {
    auto& places = counts[digit];
    if (places[(cells[0].key >> (8 * digit)) & 0xFF] == cells.size()) continue;
    std::uint32_t total = 0;
    for (std::uint32_t& place : places) total += std::exchange(place, total);
    for (const Cell& cell : cells) other[places[(cell.key >> (8 * digit)) & 0xFF]++] = cell;
    cells.swap(other);
  }
}

// A mixture of one product kernel for each observation and a broad one, the prior: a truncated normal for
// each number, and for each choice a distribution that prefers the observed one.
class ParzenDensity {
 public:
  // `weights`: of the observations, relative to 1 for the prior.
  ParzenDensity(const Space& space, const std::vector<const ModelPoint*>& centers,
                std::vector<double> weights)
      : dimensions_(space.parameters().size()), kernels_(centers.size() + 1) {
    weights.push_back(1);
    double total = 0;
    for (const double weight : weights) cumulated_.push_back(total += weight);
    for (std::size_t k = 0; k < kernels_; ++k) logs_.push_back(std::log(weights[k] / total));
    centers_.assign(kernels_ * dimensions_, kInactive);
    inverse_widths_.assign(kernels_ * dimensions_, 1);
    for (std::size_t k = 0; k < centers.size(); ++k) {
      for (std::size_t d = 0; d < dimensions_; ++d) centers_[d * kernels_ + k] = (*centers[k])[d];
    }
    for (std::size_t d = 0; d < dimensions_; ++d) {
      const auto* const choices = std::get_if<Choices>(&space.parameters()[d].domain);
      choice_counts_.push_back(choices == nullptr ? 0 : static_cast<double>(choices->values.size()));
      if (choices == nullptr) set_widths(d);
    }
  }

  // A draw, not normalized: also inactive parameters have a value.
  ModelPoint draw(TrialRandom& random) const {
    const double at = random.uniform() * cumulated_.back();
    const std::size_t kernel = std::min<std::size_t>(
        kernels_ - 1, static_cast<std::size_t>(std::upper_bound(cumulated_.begin(), cumulated_.end(), at) -
                                               cumulated_.begin()));
    ModelPoint point(dimensions_);
    for (std::size_t d = 0; d < dimensions_; ++d)
      point[d] = choice_counts_[d] > 0 ? draw_choice(kernel, d, random) : draw_number(kernel, d, random);
    return point;
  }

  // Any number above `enough` if it is above: the rest of the sum then decides nothing. `logs` is scratch.
  double log_density(const ModelPoint& point, std::vector<double>& logs, double enough = kInfinity) const {
    // One pass over all kernels for each dimension keeps the loop free of branches.
    logs = logs_;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      if (std::isnan(point[d])) continue;
      const double* const centers = &centers_[d * kernels_];
      if (choice_counts_[d] > 0) {
        const double same = std::log(probability_of_center(d));
        const double other =
            choice_counts_[d] > 1 ? std::log((1 - probability_of_center(d)) / (choice_counts_[d] - 1)) : 0;
        const double any = -std::log(choice_counts_[d]);
        for (std::size_t k = 0; k < kernels_; ++k)
          logs[k] += std::isnan(centers[k]) ? any : centers[k] == point[d] ? same : other;
      } else {
        const double* const inverse_widths = &inverse_widths_[d * kernels_];
        for (std::size_t k = 0; k < kernels_; ++k) {
          const double z = (point[d] - centers[k]) * inverse_widths[k];
          logs[k] -= 0.5 * z * z;
        }
      }
    }
    double largest = logs[0];
    for (const double log : logs) largest = std::max(largest, log);
    // Of most kernels nothing is left in the sum.
    constexpr double kNegligible = -40;
    constexpr double kRounding = 1e-9;
    const double enough_sum = std::exp(enough + kRounding - largest);
    double sum = 0;
    for (const double log : logs) {
      sum += log - largest < kNegligible ? 0 : std::exp(log - largest);
      if (sum > enough_sum) break;
    }
    return largest + std::log(sum);
  }

 private:
  // The larger distance to a neighbour, within limits. The prior, and a kernel without this parameter, get
  // the middle of the range as their center and its whole width.
  void set_widths(std::size_t d) {
    double* const centers = &centers_[d * kernels_];
    double* const inverse_widths = &inverse_widths_[d * kernels_];
    std::vector<Cell> sorted;
    sorted.reserve(kernels_);
    for (std::size_t k = 0; k < kernels_; ++k) {
      if (!std::isnan(centers[k])) sorted.push_back({key_of(centers[k]), static_cast<std::uint32_t>(k)});
    }
    sort_cells(sorted);
    const double least = 1 / std::min(100.0, 1 + static_cast<double>(kernels_));
    double before = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const double center = number_of(sorted[i].key);
      const double left = center - before;
      const double right = (i + 1 < sorted.size() ? number_of(sorted[i + 1].key) : 1) - center;
      double width = std::max(left, right);
      if (sorted.size() > 1 && i == 0) width = right;
      if (sorted.size() > 1 && i + 1 == sorted.size()) width = left;
      inverse_widths[sorted[i].row] = 1 / std::clamp(width, least, 1.0);
      before = center;
    }
    // Most kernels of many are inside and have the least width: the logarithm of their norm is computed once.
    double known_norm = 1;
    double log_norm = 0;
    for (std::size_t k = 0; k < kernels_; ++k) {
      if (std::isnan(centers[k])) centers[k] = 0.5;
      const double inside =
          share_between(-centers[k] * inverse_widths[k], (1 - centers[k]) * inverse_widths[k]);
      const double norm = inside * std::sqrt(2 * std::numbers::pi) / inverse_widths[k];
      if (norm != known_norm) log_norm = std::log(norm);
      known_norm = norm;
      logs_[k] -= log_norm;
    }
  }
  double probability_of_center(std::size_t d) const {
    const double prior = 1 / static_cast<double>(kernels_);
    return (1 + prior) / (1 + choice_counts_[d] * prior);
  }
  double draw_choice(std::size_t kernel, std::size_t d, TrialRandom& random) const {
    const double center = centers_[d * kernels_ + kernel];
    const auto count = static_cast<std::uint64_t>(choice_counts_[d]);
    if (std::isnan(center) || count == 1) return static_cast<double>(random.below(count));
    if (random.uniform() < probability_of_center(d)) return center;
    const auto other = static_cast<double>(random.below(count - 1));
    return other < center ? other : other + 1;
  }
  double draw_number(std::size_t kernel, std::size_t d, TrialRandom& random) const {
    const double center = centers_[d * kernels_ + kernel];
    // At least a third of a kernel is inside.
    double number = center;
    do {
      number = center + random.normal() / inverse_widths_[d * kernels_ + kernel];
    } while (number < 0 || number > 1);
    return number;
  }

  std::size_t dimensions_;
  std::size_t kernels_;
  std::vector<double> centers_;         // [dimension][kernel]; the last kernel is the prior
  std::vector<double> inverse_widths_;  // [dimension][kernel]
  std::vector<double> logs_;            // of a kernel's weight over its norm
  std::vector<double> cumulated_;
  std::vector<double> choice_counts_;  // 0 for a number
};

// From the oldest: a ramp up to 1, then 1 for the most recent.
std::vector<double> weights_by_age(std::size_t count) {
  std::vector<double> weights(count, 1);
  if (count <= kRecent) return weights;
  const double old = static_cast<double>(count - kRecent);
  for (std::size_t i = 0; i < count - kRecent; ++i) {
    const double least = 1 / static_cast<double>(count);
    weights[i] = least + (1 - least) * (old > 1 ? static_cast<double>(i) / (old - 1) : 0);
  }
  return weights;
}

}  // namespace

std::optional<Coordinates> tpe_point(TrialNumber number, std::uint64_t seed, const History& history) {
  TrialRandom random(seed, number);
  const Observations known = observations_of(history);
  if (known.ended.size() < kStartupTrials) return random_point(history.space, random);
  std::vector<const Observation*> sorted;
  sorted.reserve(known.ended.size());
  for (const Observation& observation : known.ended) sorted.push_back(&observation);
  const auto is_better = [](const Observation* a, const Observation* b) {
    return a->loss < b->loss || (a->loss == b->loss && a->number < b->number);
  };
  const auto good_count = std::min(
      kMostGood, static_cast<std::size_t>(std::ceil(kGoodShare * static_cast<double>(sorted.size()))));
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(good_count), sorted.end(),
                    is_better);
  std::vector<const ModelPoint*> good_points;
  for (std::size_t i = 0; i < good_count; ++i) good_points.push_back(&sorted[i]->point);
  std::vector<const ModelPoint*> bad_points;
  bad_points.reserve(known.ended.size() + known.running.size());
  for (const Observation& observation : known.ended) {
    if (is_better(sorted[good_count - 1], &observation)) bad_points.push_back(&observation.point);
  }
  for (const ModelPoint& point : known.running) bad_points.push_back(&point);

  const ParzenDensity good(history.space, good_points, std::vector<double>(good_count, 1));
  const ParzenDensity bad(history.space, bad_points, weights_by_age(bad_points.size()));
  std::optional<Coordinates> best;
  double best_score = -kInfinity;
  std::vector<double> scratch;
  const std::size_t most_candidates =
      std::clamp(kMostCandidates * kKernelsOfMost / std::max<std::size_t>(bad_points.size(), 1),
                 kLeastCandidates, kMostCandidates);
  std::size_t candidates = 0;
  for (int tries = 0; candidates < most_candidates && tries < kMostTries; ++tries) {
    Coordinates point = from_model(history.space, good.draw(random));
    if (!history.space.is_feasible(point)) continue;
    ++candidates;
    const ModelPoint at = to_model(history.space, point);
    const double good_log = good.log_density(at, scratch);
    const double score = good_log - bad.log_density(at, scratch, good_log - best_score);
    if (!best || score > best_score) {
      best = std::move(point);
      best_score = score;
    }
  }
  return best;
}

}  // namespace stoker::sweep
