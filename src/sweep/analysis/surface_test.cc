#include "sweep/analysis/surface.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sweep {
namespace {

// A valley at x = 0.01 for every kind, and a slope over y that only one kind has.
Definition valley_definition() {
  Definition definition;
  definition.space = *Space::create({
      {"x", NumberRange{.low = 1e-4, .high = 1, .is_log = true}, {}},
      {"kind", Choices{{std::string("a"), std::string("b"), std::string("c")}}, {}},
      {"y", NumberRange{}, Activation{"kind", {Value(std::string("a"))}}},
  });
  definition.objectives = {{"loss", Goal::minimize}};
  return definition;
}

std::vector<StudyTrial> valley_trials(const Space& space, int count) {
  std::vector<StudyTrial> trials;
  for (int i = 0; i < count; ++i) {
    StudyTrial trial;
    trial.number = static_cast<TrialNumber>(i);
    trial.state = TrialState::complete;
    trial.point = space.normalized({std::pow(10, -4 * std::fmod(i * 0.618034, 1)), static_cast<double>(i % 3),
                                    std::fmod(i * 0.754878, 1)});
    const double distance = std::log10(trial.point[0]) + 2;
    trial.values = {distance * distance + (std::isnan(trial.point[2]) ? 0 : trial.point[2])};
    trials.push_back(std::move(trial));
  }
  return trials;
}

TEST(ObjectiveSurface, has_the_valley_where_the_objective_has_it) {
  const Definition definition = valley_definition();
  const auto surface = objective_surface(definition, valley_trials(definition.space, 200), 0, 0, 1);
  ASSERT_TRUE(surface.has_value());
  ASSERT_EQ(surface->y_at.size(), 3);
  EXPECT_NEAR(surface->x_at.front(), 1e-4, 2e-5);
  for (std::size_t row = 0; row < 3; ++row) {
    std::size_t best = 0;
    for (std::size_t column = 0; column < surface->x_at.size(); ++column) {
      if (surface->rank(row, column) < surface->rank(row, best)) best = column;
    }
    EXPECT_NEAR(std::log10(surface->x_at[best]), -2, 0.3) << row;
    EXPECT_GT(surface->rank(row, 0), surface->rank(row, best) + 0.4);
  }
  EXPECT_LT(surface->values.front(), surface->values.back());
}

TEST(ObjectiveSurface, of_a_conditional_parameter_uses_the_trials_that_have_it) {
  const Definition definition = valley_definition();
  const auto surface = objective_surface(definition, valley_trials(definition.space, 150), 0, 0, 2);
  ASSERT_TRUE(surface.has_value());
  const std::size_t middle = surface->x_at.size() / 2;
  EXPECT_LT(surface->rank(0, middle), surface->rank(surface->y_at.size() - 1, middle));
  EXPECT_FALSE(objective_surface(definition, valley_trials(definition.space, 57), 0, 0, 2).has_value());
}

}  // namespace
}  // namespace stoker::sweep
