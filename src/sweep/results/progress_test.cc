#include "sweep/results/progress.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sweep {
namespace {

using testing::ElementsAre;

Definition progress_definition(Goal goal, std::uint64_t most_trials) {
  Definition definition;
  definition.objectives = {{"score", goal}};
  definition.most_trials = most_trials;
  return definition;
}

// Started at 100.
StudyTrial ended_trial(TrialNumber number, double ended, double value) {
  StudyTrial trial;
  trial.number = number;
  trial.state = TrialState::complete;
  trial.values = {value};
  trial.started = 100;
  trial.ended = ended;
  return trial;
}

StudyTrial failed_trial(TrialNumber number, std::string message) {
  StudyTrial trial = ended_trial(number, 110, 0);
  trial.state = TrialState::failed;
  trial.values = {};
  trial.message = std::move(message);
  return trial;
}

TEST(Progress, improvements_are_in_the_order_of_the_endings) {
  const std::vector<StudyTrial> trials = {ended_trial(0, 140, 3), ended_trial(1, 120, 5),
                                          failed_trial(2, "exit code 1"), ended_trial(3, 130, 4),
                                          ended_trial(4, 150, 9)};
  std::vector<TrialNumber> numbers;
  for (const Improvement& each : improvements(progress_definition(Goal::minimize, 0), trials, 0))
    numbers.push_back(each.trial->number);
  EXPECT_THAT(numbers, ElementsAre(1, 3, 0));
  const auto largest = improvements(progress_definition(Goal::maximize, 0), trials, 0);
  ASSERT_EQ(largest.size(), 2);
  EXPECT_EQ(largest[1].trial->number, 4);
  EXPECT_EQ(largest[1].place, 4);
}

TEST(Progress, failures_are_grouped_by_their_reason) {
  const std::vector<StudyTrial> trials = {failed_trial(0, "exit code 1"), failed_trial(1, "loss is nan"),
                                          ended_trial(2, 120, 1), failed_trial(3, "loss is nan")};
  const auto groups = failures(trials);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].message, "loss is nan");
  EXPECT_THAT(groups[0].trials, ElementsAre(1, 3));
  EXPECT_THAT(groups[1].trials, ElementsAre(0));
}

TEST(Progress, the_pace_of_the_last_endings_gives_the_expected_end) {
  std::vector<StudyTrial> trials = {ended_trial(0, 110, 1), ended_trial(1, 120, 1), failed_trial(2, "x")};
  EXPECT_DOUBLE_EQ(pace_of(progress_definition(Goal::minimize, 6), trials, 999).per_hour, 360);
  EXPECT_TRUE(std::isnan(pace_of(progress_definition(Goal::minimize, 6), trials, 999).seconds_left));
  trials.push_back({.number = 3, .point = {}, .started = 121});
  const StudyPace pace = pace_of(progress_definition(Goal::minimize, 6), trials, 140);
  EXPECT_DOUBLE_EQ(pace.per_hour, 180);
  EXPECT_DOUBLE_EQ(pace.seconds_left, 80);
  EXPECT_TRUE(std::isnan(pace_of(progress_definition(Goal::minimize, 0), trials, 140).seconds_left));
  EXPECT_TRUE(std::isnan(pace_of(progress_definition(Goal::minimize, 0), {}, 140).per_hour));
}

TEST(Progress, of_many_endings_only_the_last_fifty_count) {
  std::vector<StudyTrial> trials;
  for (TrialNumber i = 0; i < 100; ++i)
    trials.push_back(
        ended_trial(i, i < 50 ? 101 + static_cast<double>(i) : 150 + 10 * static_cast<double>(i - 49), 1));
  EXPECT_DOUBLE_EQ(pace_of(progress_definition(Goal::minimize, 0), trials, 999).per_hour, 360);
}

}  // namespace
}  // namespace stoker::sweep
