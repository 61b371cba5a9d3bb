#include "sweep/file/warm_start.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "sweep/file/open_study.h"
#include "sweep/file/sweep_file.h"
#include "sweep/results/trial_table.h"

namespace stoker::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Definition sweep(std::string_view space, std::string_view rest = "objectives: {loss: minimize}\n") {
  auto file = parse_sweep("lr.yaml", format("space:\n{}{}", space, rest));
  EXPECT_TRUE(file.ok()) << file.status().to_string();
  return file->definition;
}

Definition narrow() {
  return sweep(R"(
  lr: {min: 0.01, max: 1, log: true}
  kind: [sgd, 12, "12", true]
  momentum: {min: 0, max: 0.9, step: 0.1, when: {kind: sgd}}
  layers: {min: 1, max: 4}
)",
               "constraints: [layers < 4 or lr < 0.5]\nobjectives: {loss: minimize}\n");
}

TEST(WarmStart, tables_are_read_by_their_header) {
  const auto read = parse_prior_table(narrow(), "old.csv",
                                      "\xef\xbb\xbftrial,state,loss,lr,kind,momentum,layers,seconds,host\r\n"
                                      "0,complete,0.5,0.1,sgd,0.3,2,1.0,n1\r\n"
                                      "1,complete,0.4,1e-2,12,,4,1.0,n1\r\n"
                                      "2,failed,,0.1,sgd,0.3,2,1.0,n1\r\n"
                                      "3,complete,0.3,0.001,sgd,0.3,2,1.0,n1\r\n"  // lr outside
                                      "4,complete,0.3,0.1,adam,,2,1.0,n1\r\n"      // no such kind
                                      "5,complete,0.3,0.1,sgd,,2,1.0,n1\r\n"       // momentum is missing
                                      "6,complete,0.3,0.1,sgd,0.35,2,1.0,n1\r\n"   // between steps
                                      "7,complete,0.3,0.9,true,,4,1.0,n1\r\n"      // against the constraint
                                      "8,complete,0.3,0.2,true,,3.0,1.0,n1\r\n\n");
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  ASSERT_EQ(read->trials.size(), 3);
  EXPECT_EQ(to_text(narrow().space.decode(read->trials[0].point)), "lr=0.1 kind=sgd momentum=0.3 layers=2");
  EXPECT_EQ(to_text(narrow().space.decode(read->trials[2].point)), "lr=0.2 kind=true layers=3");
  EXPECT_THAT(read->trials[1].values, ElementsAre(0.4));
  EXPECT_THAT(read->notes, ElementsAre("old.csv: no parameters, not read: host",
                                       "old.csv: 3 trials for the sampler, 5 outside the space left out"));
}

TEST(WarmStart, wrong_tables_are_refused) {
  const auto error = [](std::string_view text) {
    return parse_prior_table(narrow(), "old.csv", text).status().to_string();
  };
  EXPECT_EQ(error(""), "old.csv: has no loss (objectives)");
  EXPECT_EQ(error("lr,acc\n0.1,0.5\n"), "old.csv: has no loss (objectives)");
  EXPECT_EQ(error("lr,loss\n0.1\n"), "old.csv:2: 1 cell in a row of 2 columns");
  EXPECT_EQ(error("lr,loss\n0.1,low\n"), "old.csv:2: value 'low': is not a number");
  EXPECT_EQ(error("lr,loss\n0.1,nan\n"), "old.csv:2: value 'nan': is not a number");
  EXPECT_EQ(error("lr,loss\n\"0.1,2\n"), "old.csv:2: a quote is not closed");
}

TEST(WarmStart, studies_and_their_tables_give_the_same_trials) {
  TempDirectory folder;
  Definition wide = sweep("  lr: {min: 0.001, max: 1, log: true}\n  kind: [sgd, '1']\n",
                          "objectives: {seconds: minimize, loss: minimize}\nsampler: sobol\n");
  Study old = *Study::create(folder / "old.study", wide);
  for (int i = 0; i < 20; ++i) {
    const auto asked = *old.ask();
    ASSERT_TRUE(old.tell(asked->number, i == 3 ? TrialEnding{TrialState::failed, {}, ""}
                                               : TrialEnding{TrialState::complete, {7, 0.1 * i}, ""})
                    .ok());
  }
  std::vector<const StudyTrial*> all;
  for (const StudyTrial& trial : old.trials()) all.push_back(&trial);
  ASSERT_TRUE(write_file(folder / "old.csv", csv_text(trial_table(wide, all, Digits::exact))).ok());
  Definition definition = sweep("  lr: {min: 0.1, max: 1, log: true}\n  kind: [sgd, '1']\n");
  definition.warm_start = {"old.study"};
  const auto of_study = read_prior_trials(definition, folder.path());
  ASSERT_TRUE(of_study.ok()) << of_study.status().to_string();
  EXPECT_GE(of_study->trials.size(), 4);
  EXPECT_LE(of_study->trials.size(), 9);
  definition.warm_start = {"old.csv"};
  const auto of_table = read_prior_trials(definition, folder.path());
  ASSERT_TRUE(of_table.ok()) << of_table.status().to_string();
  ASSERT_EQ(of_table->trials.size(), of_study->trials.size());
  for (std::size_t i = 0; i < of_table->trials.size(); ++i) {
    EXPECT_EQ(of_table->trials[i].point, of_study->trials[i].point);
    EXPECT_EQ(of_table->trials[i].values, of_study->trials[i].values);
  }
  definition.warm_start = {"old.study", "none.study"};
  EXPECT_THAT(read_prior_trials(definition, folder.path()).status().to_string(), HasSubstr("none.study"));
}

}  // namespace
}  // namespace stoker::sweep
