#include "sweep/analysis/importance.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "sweep/file/sweep_file.h"

namespace stoker::sweep {
namespace {

using Json = nlohmann::json;

Value value_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return json.get<double>();
}

std::vector<StudyTrial> trials_of(const Space& space, const Json& rows) {
  std::vector<StudyTrial> trials;
  for (const Json& row : rows) {
    Assignment values;
    for (const auto& [name, value] : row[0].items()) values.emplace_back(name, value_of(value));
    auto point = space.encode(values);
    EXPECT_TRUE(point.ok()) << point.status().to_string();
    StudyTrial trial;
    trial.number = trials.size();
    trial.state = TrialState::complete;
    trial.point = *point;
    trial.values = {row[1].get<double>()};
    trials.push_back(std::move(trial));
  }
  return trials;
}

TEST(Importance, is_that_of_optuna_on_the_golden_problems) {
  const Json reference = golden("importances.json")["problems"];
  ASSERT_EQ(reference.size(), 6);
  for (const Json& problem : reference) {
    const std::string name = problem["sweep"]["name"];
    const auto file = parse_sweep(name, problem["sweep"].dump());
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    const Definition& definition = file->definition;
    const auto result = importances(definition, trials_of(definition.space, problem["trials"]), 0);
    ASSERT_EQ(result.size(), definition.space.parameters().size()) << name;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::string& parameter = definition.space.parameters()[result[i].parameter].name;
      EXPECT_NEAR(result[i].share, problem["importances"][parameter].get<double>(), 1e-6)
          << name << " " << parameter;
      EXPECT_LE(result[i].share, result[i > 0 ? i - 1 : 0].share) << name;
    }
  }
}

Definition small_definition() {
  Definition definition;
  definition.space = *Space::create({{"a", NumberRange{}, {}}, {"b", NumberRange{}, {}}});
  definition.objectives = {{"loss", Goal::minimize}, {"score", Goal::maximize}};
  return definition;
}

// The loss depends on a, the score on b.
std::vector<StudyTrial> small_trials(int count) {
  std::vector<StudyTrial> trials;
  for (int i = 0; i < count; ++i) {
    StudyTrial trial;
    trial.number = static_cast<TrialNumber>(i);
    trial.state = TrialState::complete;
    trial.point = {std::fmod(i * 0.618034, 1), std::fmod(i * 0.754878, 1)};
    trial.values = {trial.point[0], trial.point[1]};
    trials.push_back(std::move(trial));
  }
  return trials;
}

TEST(Importance, each_objective_has_its_own) {
  const Definition definition = small_definition();
  const std::vector<StudyTrial> trials = small_trials(100);
  EXPECT_EQ(importances(definition, trials, 0)[0].parameter, 0);
  EXPECT_EQ(importances(definition, trials, 1)[0].parameter, 1);
  EXPECT_GT(importances(definition, trials, 0)[0].share, 0.7);
}

TEST(Importance, is_unknown_with_few_trials_or_equal_values) {
  const Definition definition = small_definition();
  EXPECT_EQ(importances(definition, small_trials(19), 0).size(), 0);
  EXPECT_EQ(importances(definition, small_trials(20), 0).size(), 2);
  std::vector<StudyTrial> trials = small_trials(40);
  for (StudyTrial& trial : trials) trial.values = {1, 1};
  EXPECT_EQ(importances(definition, trials, 0).size(), 0);
  for (StudyTrial& trial : trials) trial.values = {std::nan(""), 1};
  EXPECT_EQ(importances(definition, trials, 0).size(), 0);
}

}  // namespace
}  // namespace stoker::sweep
