#include "sweep/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/enum_names.h"
#include "sweep/sampler/gp.h"
#include "sweep/sampler/quasi_random.h"
#include "sweep/sampler/tpe.h"
#include "sweep/sampler/uniform.h"

namespace stoker::sweep {

namespace {

Status no_feasible_point() {
  return invalid("space: none of {} random points satisfies the constraints", kMostTries)
      .cure("weaker constraints, or ranges that satisfy them more often");
}

class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(std::uint64_t seed) : seed_(seed) {}
  Result<std::optional<Coordinates>> propose(TrialNumber number, const History& history) const override {
    TrialRandom random(seed_, number);
    if (auto point = random_point(history.space, random)) return point;
    return no_feasible_point();
  }

 private:
  std::uint64_t seed_;
};

// The n-th feasible point in the order of the space, the last parameter first to change.
class GridSampler final : public Sampler {
 public:
  Result<std::optional<Coordinates>> propose(TrialNumber number, const History& history) const override {
    Walk walk{.space = history.space, .left = number, .found = std::nullopt};
    Coordinates point(history.space.parameters().size(), kInactive);
    visit(walk, point, 0);
    return walk.found;
  }

 private:
  struct Walk {
    const Space& space;
    TrialNumber left;
    std::optional<Coordinates> found;
  };

  static double nth_value(const Parameter& parameter, std::uint64_t n) {
    if (std::holds_alternative<Choices>(parameter.domain)) return static_cast<double>(n);
    const NumberRange& range = std::get<NumberRange>(parameter.domain);
    const double step = range.step > 0 ? range.step : 1;
    return number_at(range, position_of(range, range.low + step * static_cast<double>(n)));
  }
  // Sets the parameters from this place in the order on, until the point is found.
  static void visit(Walk& walk, Coordinates& point, std::size_t place) {
    if (place == walk.space.order().size()) {
      if (!walk.space.is_feasible(point)) return;
      if (walk.left == 0) walk.found = point;
      --walk.left;
      return;
    }
    const std::size_t parameter = walk.space.order()[place];
    point[parameter] = kInactive;
    if (!walk.space.is_active(parameter, point)) return visit(walk, point, place + 1);
    const std::uint64_t count = value_count(walk.space.parameters()[parameter]).value_or(0);
    for (std::uint64_t n = 0; n < count && !walk.found; ++n) {
      point[parameter] = nth_value(walk.space.parameters()[parameter], n);
      visit(walk, point, place + 1);
    }
  }
};

class QuasiRandomSampler final : public Sampler {
 public:
  QuasiRandomSampler(SamplerKind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {}
  // A point that the constraints refuse is replaced by a random one, which leaves all other points where they
  // are.
  Result<std::optional<Coordinates>> propose(TrialNumber number, const History& history) const override {
    const auto dimensions = static_cast<unsigned>(history.space.parameters().size());
    const std::vector<double> unit = kind_ == SamplerKind::sobol
                                         ? scrambled_sobol_point(number, dimensions, seed_)
                                         : scrambled_halton_point(number, dimensions, seed_);
    Coordinates point = from_unit_cube(history.space, unit);
    if (history.space.is_feasible(point)) return point;
    TrialRandom random(seed_, number);
    if (auto other = random_point(history.space, random)) return other;
    return no_feasible_point();
  }

 private:
  SamplerKind kind_;
  std::uint64_t seed_;
};

class ModelSampler final : public Sampler {
 public:
  ModelSampler(SamplerKind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {}
  Result<std::optional<Coordinates>> propose(TrialNumber number, const History& history) const override {
    const bool is_gp =
        history.goals.size() == 1 &&
        (kind_ == SamplerKind::gp || (kind_ == SamplerKind::automatic && ended(history) < kMostForGp));
    if (auto point = (is_gp ? gp_point : tpe_point)(number, seed_, history)) return point;
    return no_feasible_point();
  }

 private:
  static std::size_t ended(const History& history) {
    const auto ended =
        std::count_if(history.trials.begin(), history.trials.end(),
                      [](const StudyTrial& trial) { return trial.state != TrialState::running; });
    return static_cast<std::size_t>(ended) + history.prior.size();
  }

  SamplerKind kind_;
  std::uint64_t seed_;
};

}  // namespace

Coordinates from_unit_cube(const Space& space, const std::vector<double>& unit) {
  Coordinates point(unit.size());
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
      point[i] = std::floor(unit[i] * static_cast<double>(choices->values.size()));
      continue;
    }
    const NumberRange& range = std::get<NumberRange>(parameter.domain);
    const DensityInterval interval = density_interval(range);
    point[i] = number_at(range, interval.low + unit[i] * (interval.high - interval.low));
  }
  return space.normalized(std::move(point));
}

std::optional<Coordinates> random_point(const Space& space, TrialRandom& random) {
  std::vector<double> unit(space.parameters().size());
  for (int tries = 0; tries < kMostTries; ++tries) {
    for (double& u : unit) u = random.uniform();
    Coordinates point = from_unit_cube(space, unit);
    if (space.is_feasible(point)) return point;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Sampler>> make_sampler(SamplerKind kind, const Space& space, std::uint64_t seed) {
  switch (kind) {
    case SamplerKind::automatic:
    case SamplerKind::gp:
    case SamplerKind::tpe:
      return std::make_unique<ModelSampler>(kind, seed);
    case SamplerKind::random:
      return std::make_unique<RandomSampler>(seed);
    case SamplerKind::grid:
      for (const Parameter& parameter : space.parameters()) {
        if (!value_count(parameter))
          return invalid("sampler grid: {} has infinitely many values", parameter.name)
              .cure("values: [...] or a step for {}", parameter.name);
      }
      if (!space.count()) return invalid("sampler grid: over 10^9 points").cure("sampler: tpe");
      return std::make_unique<GridSampler>();
    case SamplerKind::sobol:
    case SamplerKind::halton:
    case SamplerKind::optuna:
      break;
  }
  if (space.parameters().size() > kMostDimensions)
    return invalid("sampler {}: {} parameters (at most {})", stoker::to_text(kind), space.parameters().size(),
                   kMostDimensions)
        .cure("sampler: random");
  return std::make_unique<QuasiRandomSampler>(kind, seed);
}

}  // namespace stoker::sweep
