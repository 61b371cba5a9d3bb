#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "sweep/runner/command_template.h"
#include "sweep/runner/trial_metrics.h"

namespace stoker::sweep {
namespace {

using testing::ElementsAre;

Space optimizer_space() {
  return *Space::create({{"lr", NumberRange{.low = 0.001, .high = 1, .is_log = true}, {}},
                         {"kind", Choices{{std::string("sgd"), std::string("adam w")}}, {}},
                         {"momentum", NumberRange{}, Activation{"kind", {Value(std::string("sgd"))}}}});
}

const Assignment kSgd = {{"lr", 0.1}, {"kind", std::string("sgd")}, {"momentum", 0.9}};
const Assignment kAdam = {{"lr", 0.1}, {"kind", std::string("adam w")}};

TEST(CommandTemplate, placeholders_become_values) {
  const Space space = optimizer_space();
  const std::vector<std::string> command = {"train.py", "--lr={lr}", "{kind}", "--momentum={momentum}",
                                            "{{lr}}",   "a}}b"};
  ASSERT_TRUE(check_command(command, space).ok());
  EXPECT_THAT(fill_command(command, space, kSgd),
              ElementsAre("train.py", "--lr=0.1", "sgd", "--momentum=0.9", "{lr}", "a}b"));
  EXPECT_THAT(fill_command(command, space, kAdam),
              ElementsAre("train.py", "--lr=0.1", "adam w", "{lr}", "a}b"));
}

TEST(CommandTemplate, without_placeholders_active_parameters_are_options) {
  EXPECT_THAT(fill_command({"train.py"}, optimizer_space(), kAdam),
              ElementsAre("train.py", "--lr=0.1", "--kind=adam w"));
}

TEST(CommandTemplate, wrong_placeholders_are_refused) {
  EXPECT_EQ(check_command({"{lrr}"}, optimizer_space()).message(),
            "command: {lrr} is no parameter; did you mean 'lr'?");
  EXPECT_EQ(check_command({"a{lr"}, optimizer_space()).to_string(),
            "command: 'a{lr' has a '{' without its '}'\n  try: {{ for a brace");
  EXPECT_FALSE(check_command({"{}"}, optimizer_space()).ok());
}

class TrialMetricsTest : public testing::Test {
 protected:
  TrialMetricsTest() { definition_.objectives = {{"loss", Goal::minimize}}; }
  TrialMetrics metrics() { return *TrialMetrics::create(definition_, folder_.path()); }
  // The value of the first objective after this output.
  std::string value_after(std::string_view output) {
    TrialMetrics metrics = this->metrics();
    metrics.read_output(output);
    const auto values = metrics.finish();
    return values.ok() ? format("{}", (*values)[0]) : std::string(values.error().message());
  }

  TempDirectory folder_;
  Definition definition_;
};

TEST_F(TrialMetricsTest, the_last_named_value_of_the_output_counts) {
  EXPECT_EQ(value_after("epoch 1 loss: 0.5, acc 3\nepoch 2 loss: 0.25, acc 4\n"), "0.25");
  EXPECT_EQ(value_after("loss=1e-3"), "0.001");
  EXPECT_EQ(value_after("{\"loss\": 0.125, \"step\": 3}\n"), "0.125");
  EXPECT_EQ(value_after("'loss': 2.0}\n"), "2");
  EXPECT_EQ(value_after("val_loss: 7\nloss/train: 3\nloss is small\n"),
            "no loss in its points and its output");
}

TEST_F(TrialMetricsTest, a_number_on_the_last_line_is_the_only_objective) {
  EXPECT_EQ(value_after("starting\n0.75\n\n"), "0.75");
  EXPECT_EQ(value_after("0.75\ndone\n"), "no loss in its points and its output");
  EXPECT_EQ(value_after("loss: 0.5\n3\n"), "0.5");
  definition_.objectives.push_back({"seconds", Goal::minimize});
  EXPECT_EQ(value_after("0.75\n"), "no loss in its points and its output");
}

TEST_F(TrialMetricsTest, points_outrank_the_output_and_are_reported_by_step) {
  TrialMetrics metrics = this->metrics();
  metrics.read_output("loss: 9\n");
  EXPECT_TRUE(metrics.poll().empty());
  ASSERT_TRUE(write_file(folder_ / "points-0000.csv",
                         "time,step,value,metric\n1,1,0.5,loss\n1,1,7,other\n1,2,0.25,loss\n")
                  .ok());
  const auto reports = metrics.poll();
  ASSERT_EQ(reports.size(), 2);
  EXPECT_EQ(reports[1].step, 2);
  EXPECT_EQ(reports[1].value, 0.25);
  EXPECT_TRUE(metrics.poll().empty());
  metrics.read_output("loss: 8\n");
  EXPECT_THAT(*metrics.finish(), ElementsAre(0.25));
}

}  // namespace
}  // namespace stoker::sweep
