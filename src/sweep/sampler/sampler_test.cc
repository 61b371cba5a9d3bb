#include "sweep/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "base/enum_names.h"
#include "base/golden_test.h"
#include "sweep/sampler/gaussian_process.h"
#include "sweep/sampler/quasi_random.h"
#include "sweep/sampler/uniform.h"

namespace stoker::sweep {
namespace {

const std::vector<Goal> kMinimize = {Goal::minimize};

Choices texts(std::initializer_list<const char*> values) {
  Choices choices;
  for (const char* value : values) choices.values.emplace_back(std::string(value));
  return choices;
}

// Every kind of parameter, one that is inactive at times, and a constraint.
Space mixed_space() {
  return *Space::create(
      {
          {"lr", NumberRange{.low = 1e-5, .high = 1, .is_log = true}, {}},
          {"momentum", NumberRange{.low = 0, .high = 0.99}, Activation{"kind", {Value(std::string("sgd"))}}},
          {"kind", texts({"sgd", "adam", "lamb"}), {}},
          {"layers", NumberRange{.low = 1, .high = 12, .is_integer = true}, {}},
          {"dropout", NumberRange{.low = 0, .high = 0.5, .step = 0.1}, {}},
      },
      {*Expression::parse("layers * dropout <= 3")});
}

// A smooth loss with its least value, 0, at lr 0.01, adam, 6 layers and dropout 0.2.
double mixed_loss(const Space& space, const Coordinates& point) {
  double loss = 0;
  for (const auto& [name, value] : space.decode(point)) {
    if (name == "lr") loss += std::pow(std::log10(*number_of(value)) + 2, 2) / 4;
    if (name == "kind") loss += to_text(value) == "adam" ? 0 : 0.5;
    if (name == "layers") loss += std::pow(*number_of(value) - 6, 2) / 36;
    if (name == "dropout") loss += std::pow(*number_of(value) - 0.2, 2) * 4;
    if (name == "momentum") loss += std::pow(*number_of(value) - 0.9, 2);
  }
  return loss;
}

StudyTrial complete(TrialNumber number, Coordinates point, double value) {
  StudyTrial trial;
  trial.number = number;
  trial.state = TrialState::complete;
  trial.point = std::move(point);
  trial.values = {value};
  return trial;
}

// The best loss of a study of this many trials.
double best_loss(SamplerKind kind, std::uint64_t seed, TrialNumber count) {
  const Space space = mixed_space();
  const auto sampler = make_sampler(kind, space, seed);
  EXPECT_TRUE(sampler.ok());
  std::vector<StudyTrial> trials;
  double best = INFINITY;
  for (TrialNumber number = 0; number < count; ++number) {
    const auto point = (*sampler)->propose(number, {space, kMinimize, trials});
    EXPECT_TRUE(point.ok() && *point) << number;
    EXPECT_TRUE(space.is_feasible(**point));
    EXPECT_EQ(space.encode(space.decode(**point)).ok(), true);
    trials.push_back(complete(number, **point, mixed_loss(space, **point)));
    best = std::min(best, trials.back().values[0]);
  }
  return best;
}

double median_of_best(SamplerKind kind, TrialNumber count) {
  std::vector<double> best;
  for (std::uint64_t seed = 0; seed < 7; ++seed) best.push_back(best_loss(kind, seed, count));
  std::sort(best.begin(), best.end());
  return best[3];
}

TEST(QuasiRandom, sobol_equals_the_reference) {
  const nlohmann::json reference = golden("quasi_random.json");
  for (std::size_t i = 0; i < reference["sobol"]["points"].size(); ++i)
    EXPECT_EQ(sobol_point(i, 4), reference["sobol"]["points"][i].get<std::vector<double>>()) << i;
  for (const auto& [index, point] : reference["sobol_d16"]["rows"].items())
    EXPECT_EQ(sobol_point(std::stoull(index), 16), point.get<std::vector<double>>()) << index;
}

TEST(QuasiRandom, halton_equals_the_reference) {
  const nlohmann::json reference = golden("quasi_random.json");
  for (std::size_t i = 0; i < reference["halton"]["points"].size(); ++i) {
    const std::vector<double> point = halton_point(i, 4);
    for (std::size_t d = 0; d < 4; ++d)
      EXPECT_NEAR(point[d], reference["halton"]["points"][i][d].get<double>(), 1e-15);
  }
}

// Each of the 2^k intervals of length 2^-k has one of 2^k points, in every dimension.
TEST(QuasiRandom, scrambled_sobol_keeps_the_intervals_filled) {
  for (unsigned dimension = 0; dimension < kMostDimensions; dimension += 9) {
    std::set<int> intervals;
    for (std::uint64_t i = 0; i < 64; ++i)
      intervals.insert(static_cast<int>(scrambled_sobol_point(i, kMostDimensions, 7)[dimension] * 64));
    EXPECT_EQ(intervals.size(), 64) << dimension;
  }
  EXPECT_NE(scrambled_sobol_point(0, 4, 1), scrambled_sobol_point(0, 4, 2));
}

TEST(QuasiRandom, scrambled_halton_keeps_the_intervals_filled) {
  std::set<int> thirds;
  for (std::uint64_t i = 0; i < 9; ++i)
    thirds.insert(static_cast<int>(scrambled_halton_point(i, 3, 5)[1] * 9));
  EXPECT_EQ(thirds.size(), 9);
  for (const double coordinate : scrambled_halton_point(1'000'000'007, kMostDimensions, 5)) {
    EXPECT_GE(coordinate, 0);
    EXPECT_LT(coordinate, 1);
  }
}

TEST(Sampler, a_proposal_depends_on_seed_and_number_only) {
  const Space space = mixed_space();
  for (const SamplerKind kind :
       {SamplerKind::gp, SamplerKind::tpe, SamplerKind::random, SamplerKind::sobol, SamplerKind::halton}) {
    const auto once = make_sampler(kind, space, 3);
    const auto again = make_sampler(kind, space, 3);
    const auto other = make_sampler(kind, space, 4);
    const History history{space, kMinimize, {}};
    EXPECT_EQ(space.decode(**(*once)->propose(5, history)), space.decode(**(*again)->propose(5, history)));
    EXPECT_NE(space.decode(**(*once)->propose(5, history)), space.decode(**(*once)->propose(6, history)));
    EXPECT_NE(space.decode(**(*once)->propose(5, history)), space.decode(**(*other)->propose(5, history)));
  }
}

TEST(Sampler, grid_lists_every_point_once_and_ends) {
  const Space space =
      *Space::create({{"kind", texts({"sgd", "adam"}), {}},
                      {"momentum", Choices{{0.0, 0.9}}, Activation{"kind", {Value(std::string("sgd"))}}},
                      {"layers", NumberRange{.low = 1, .high = 3, .is_integer = true}, {}}},
                     {*Expression::parse("layers < 3 or kind == 'sgd'")});
  const auto grid = make_sampler(SamplerKind::grid, space, 0);
  std::vector<std::string> points;
  for (TrialNumber number = 0;; ++number) {
    const auto point = (*grid)->propose(number, {space, kMinimize, {}});
    ASSERT_TRUE(point.ok());
    if (!*point) break;
    points.push_back(to_text(space.decode(**point)));
  }
  EXPECT_THAT(points, testing::ElementsAre("kind=sgd momentum=0 layers=1", "kind=sgd momentum=0 layers=2",
                                           "kind=sgd momentum=0 layers=3", "kind=sgd momentum=0.9 layers=1",
                                           "kind=sgd momentum=0.9 layers=2", "kind=sgd momentum=0.9 layers=3",
                                           "kind=adam layers=1", "kind=adam layers=2"));
}

TEST(Sampler, a_grid_of_infinitely_many_points_is_refused) {
  const auto grid = make_sampler(SamplerKind::grid, mixed_space(), 0);
  ASSERT_FALSE(grid.ok());
  EXPECT_EQ(grid.error().to_string(),
            "sampler grid: lr has infinitely many values\n  try: values: [...] or a step for lr");
}

TEST(Sampler, constraints_that_nothing_satisfies_are_an_error) {
  const Space space = *Space::create({{"a", NumberRange{}, {}}}, {*Expression::parse("a > 2")});
  for (const SamplerKind kind :
       {SamplerKind::gp, SamplerKind::tpe, SamplerKind::random, SamplerKind::sobol}) {
    const auto sampler = make_sampler(kind, space, 0);
    EXPECT_EQ((*sampler)->propose(0, {space, kMinimize, {}}).status().message(),
              "space: none of 10000 random points satisfies the constraints");
  }
}

TEST(Sampler, models_find_better_points_than_chance) {
  const double by_chance = median_of_best(SamplerKind::random, 60);
  const double tpe = median_of_best(SamplerKind::tpe, 60);
  const double gp = median_of_best(SamplerKind::gp, 60);
  EXPECT_LT(tpe, 0.5 * by_chance);
  EXPECT_LT(gp, 0.5 * tpe);
}

TEST(Sampler, a_maximized_study_mirrors_a_minimized_one) {
  const Space space = mixed_space();
  const std::vector<Goal> maximize = {Goal::maximize};
  for (const SamplerKind kind : {SamplerKind::gp, SamplerKind::tpe}) {
    const auto sampler = make_sampler(kind, space, 1);
    std::vector<StudyTrial> trials;
    std::vector<StudyTrial> mirrored;
    TrialRandom random(1, 2);
    for (TrialNumber number = 0; number < 15; ++number) {
      const Coordinates point = *random_point(space, random);
      trials.push_back(complete(number, point, mixed_loss(space, point)));
      mirrored.push_back(complete(number, point, -mixed_loss(space, point)));
    }
    EXPECT_EQ(space.decode(**(*sampler)->propose(15, {space, kMinimize, trials})),
              space.decode(**(*sampler)->propose(15, {space, maximize, mirrored})));
  }
}

TEST(Sampler, running_trials_keep_the_next_proposal_away) {
  const Space space = *Space::create({{"x", NumberRange{}, {}}, {"y", NumberRange{}, {}}});
  std::vector<StudyTrial> trials;
  TrialRandom random(5, 5);
  for (TrialNumber number = 0; number < 20; ++number) {
    const Coordinates point = *random_point(space, random);
    trials.push_back(complete(number, point, std::hypot(point[0] - 0.3, point[1] - 0.6)));
  }
  const auto sampler = make_sampler(SamplerKind::gp, space, 1);
  const Coordinates alone = **(*sampler)->propose(20, {space, kMinimize, trials});
  StudyTrial running;
  running.number = 20;
  running.point = alone;
  trials.push_back(running);
  const Coordinates beside = **(*sampler)->propose(21, {space, kMinimize, trials});
  EXPECT_GT(std::hypot(alone[0] - beside[0], alone[1] - beside[1]), 0.001);
}

// Values that no model may divide by, or choke on.
TEST(Sampler, degenerate_histories_are_no_problem) {
  const Space space = mixed_space();
  TrialRandom random(9, 9);
  for (const SamplerKind kind : {SamplerKind::gp, SamplerKind::tpe}) {
    const auto sampler = make_sampler(kind, space, 1);
    for (const double value : {0.0, 1e300, -1e300, std::nan(""), double{INFINITY}}) {
      std::vector<StudyTrial> trials;
      const Coordinates same = *random_point(space, random);
      for (TrialNumber number = 0; number < 30; ++number) {
        trials.push_back(complete(number, number % 2 == 0 ? same : *random_point(space, random),
                                  number < 3        ? 1e-300
                                  : number % 7 == 0 ? -value
                                                    : value));
      }
      const auto point = (*sampler)->propose(30, {space, kMinimize, trials});
      ASSERT_TRUE(point.ok() && *point) << stoker::to_text(kind) << " " << value;
      EXPECT_TRUE(space.is_feasible(**point));
    }
  }
}

TEST(Sampler, several_objectives_lead_to_their_front) {
  const Space space = *Space::create(
      {{"x", NumberRange{.low = -2, .high = 4}, {}}, {"y", NumberRange{.low = -2, .high = 4}, {}}});
  const std::vector<Goal> goals = {Goal::minimize, Goal::minimize};
  const auto sampler = make_sampler(SamplerKind::tpe, space, 2);
  std::vector<StudyTrial> trials;
  double last_distance = 0;
  for (TrialNumber number = 0; number < 120; ++number) {
    const Coordinates point = **(*sampler)->propose(number, {space, goals, trials});
    StudyTrial trial = complete(number, point, std::pow(point[0], 2) + std::pow(point[1], 2));
    trial.values.push_back(std::pow(point[0] - 2, 2) + std::pow(point[1], 2));
    trials.push_back(trial);
    // The front is y = 0, 0 <= x <= 2.
    if (number >= 90) last_distance += std::hypot(point[1], std::max({0.0, -point[0], point[0] - 2})) / 30;
  }
  EXPECT_LT(last_distance, 0.6);
}

TEST(GaussianProcess, passes_through_its_observations) {
  const Space space = *Space::create({{"x", NumberRange{}, {}}});
  GaussianProcess process(space);
  const std::vector<double> targets = {-1.2, 0.1, 1.3, -0.2};
  process.fit({{0.1}, {0.4}, {0.6}, {0.95}}, targets);
  EXPECT_NEAR(process.predict({0.4}).mean, 0.1, 0.05);
  EXPECT_NEAR(process.predict({0.6}).mean, 1.3, 0.05);
  EXPECT_LT(process.predict({0.6}).deviation, 0.2);
  EXPECT_GT(process.predict({0.78}).deviation, process.predict({0.6}).deviation);
  process.add_expected({{0.78}});
  EXPECT_LT(process.predict({0.78}).deviation, 0.2);
}

}  // namespace
}  // namespace stoker::sweep
