#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::sweep {
namespace {

using testing::ElementsAre;

Definition definition_of(std::vector<Objective> objectives) {
  Definition definition;
  definition.name = "lr";
  definition.space =
      *Space::create({{"lr", NumberRange{.low = 0.001, .high = 1, .is_log = true}, {}},
                      {"note", Choices{{std::string("a,\"b|"), std::string("c")}}, {}},
                      {"momentum", NumberRange{}, Activation{"note", {Value(std::string("c"))}}}});
  definition.objectives = std::move(objectives);
  return definition;
}

StudyTrial trial_of(TrialNumber number, TrialState state, std::vector<double> values) {
  StudyTrial trial;
  trial.number = number;
  trial.state = state;
  trial.values = std::move(values);
  trial.point = {0.123456, 0, kInactive};
  trial.started = 100;
  if (state != TrialState::running) trial.ended = 103.5;
  return trial;
}

std::vector<TrialNumber> numbers_of(const std::vector<const StudyTrial*>& trials) {
  std::vector<TrialNumber> numbers;
  for (const StudyTrial* trial : trials) numbers.push_back(trial->number);
  return numbers;
}

TEST(Ranking, the_goal_decides_which_trial_is_best) {
  const std::vector<StudyTrial> trials = {
      trial_of(0, TrialState::complete, {2}), trial_of(1, TrialState::failed, {}),
      trial_of(2, TrialState::complete, {1}), trial_of(3, TrialState::running, {}),
      trial_of(4, TrialState::complete, {3}), trial_of(5, TrialState::complete, {1})};
  EXPECT_THAT(numbers_of(best_trials(definition_of({{"loss", Goal::minimize}}), trials)),
              ElementsAre(2, 5, 0, 4));
  EXPECT_THAT(numbers_of(best_trials(definition_of({{"acc", Goal::maximize}}), trials)),
              ElementsAre(4, 0, 2, 5));
  EXPECT_THAT(numbers_of(ranked_trials(definition_of({{"acc", Goal::maximize}}), trials)),
              ElementsAre(4, 0, 2, 5, 3, 1));
  EXPECT_EQ(count_trials(trials).complete, 4);
  EXPECT_EQ(count_trials(trials).failed, 1);
}

TEST(Ranking, of_several_objectives_the_front_is_best) {
  const Definition definition = definition_of({{"acc", Goal::maximize}, {"seconds", Goal::minimize}});
  const std::vector<StudyTrial> trials = {
      trial_of(0, TrialState::complete, {0.9, 10}), trial_of(1, TrialState::complete, {0.8, 20}),
      trial_of(2, TrialState::complete, {0.95, 30}), trial_of(3, TrialState::complete, {0.7, 5})};
  EXPECT_THAT(numbers_of(best_trials(definition, trials)), ElementsAre(2, 0, 3));
}

TEST(Ranking, pruned_trials_follow_from_the_furthest) {
  std::vector<StudyTrial> trials = {trial_of(0, TrialState::pruned, {}), trial_of(1, TrialState::pruned, {}),
                                    trial_of(2, TrialState::complete, {1})};
  trials[0].reports = {{1, 0.5}};
  trials[1].reports = {{1, 0.5}, {4, 0.4}};
  EXPECT_THAT(numbers_of(ranked_trials(definition_of({{"loss", Goal::minimize}}), trials)),
              ElementsAre(2, 1, 0));
}

TEST(TrialTable, cells_are_quoted_and_empty_where_nothing_is) {
  const Definition definition = definition_of({{"loss", Goal::minimize}});
  const StudyTrial complete = trial_of(0, TrialState::complete, {1.0 / 3});
  const StudyTrial running = trial_of(1, TrialState::running, {});
  const std::vector<const StudyTrial*> trials = {&complete, &running};
  EXPECT_EQ(csv_text(trial_table(definition, trials, Digits::exact)),
            "trial,state,loss,lr,note,momentum,seconds\r\n"
            "0,complete,0.3333333333333333,0.123456,\"a,\"\"b|\",,3.5\r\n"
            "1,running,,0.123456,\"a,\"\"b|\",,\r\n");
  EXPECT_EQ(markdown_text(trial_table(definition, trials, Digits::four)),
            "| trial | state | loss | lr | note | momentum | seconds |\n|---|---|---|---|---|---|---|\n"
            "| 0 | complete | 0.3333 | 0.1235 | a,\"b\\| |  | 3.5 |\n"
            "| 1 | running |  | 0.1235 | a,\"b\\| |  |  |\n");
}

TEST(TrialTable, json_has_everything_of_a_trial) {
  StudyTrial trial = trial_of(7, TrialState::failed, {});
  trial.reports = {{1, 0.5}, {2, std::numeric_limits<double>::quiet_NaN()}};
  trial.message = "loss is nan";
  trial.origin = "gp";
  EXPECT_EQ(
      json_object(definition_of({{"loss", Goal::minimize}}), trial),
      R"({"number":7,"attempt":0,"state":"failed","values":{},"params":{"lr":0.123456,"note":"a,\"b|"},)"
      R"("reports":[[1,0.5],[2,null]],"origin":"gp","started":100.0,"ended":103.5,"message":"loss is nan"})");
}

}  // namespace
}  // namespace stoker::sweep
