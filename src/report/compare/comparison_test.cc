#include "report/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/compare/print.h"

namespace stoker::report {
namespace {

using testing::HasSubstr;

RunFacts run(const std::string& id, double loss, const std::string& commit = "aaaa") {
  RunFacts facts;
  facts.id = id;
  facts.state.state = record::State::done;
  facts.state_word = "done";
  facts.job = job::Job{};
  facts.capsule.code = record::CodeInfo{.commit = commit};
  facts.capsule.environment =
      record::EnvironmentInfo{.programs = {{"torch", "2.13.0"}}, .packages = "numpy==2.4.6\n"};
  facts.capsule.data = std::vector{record::DataInfo{.name = "train", .version = "1111"}};
  facts.metrics = {{.name = "loss", .points = {{.step = 1, .mean = 9}, {.step = 2, .mean = loss}}}};
  return facts;
}

TEST(Compare, equal_runs_have_no_differences) {
  const RunComparison comparison = compare({run("a", 1)}, {run("b", 1)});
  EXPECT_TRUE(comparison.changes.empty());
  EXPECT_TRUE(comparison.notes.empty());
  EXPECT_THAT(to_plain_text(comparison), HasSubstr("no differences in data"));
}

TEST(Compare, differences_are_ranked_by_aspect) {
  RunFacts other = run("b", 1, "bbbb");
  other.capsule.data->at(0).version = "2222";
  other.capsule.environment->packages = "numpy==2.5.0\nzarr==3.0\n";
  const RunComparison comparison = compare({run("a", 1)}, {other});
  std::vector<std::string> lines;
  for (const FactChange& change : comparison.changes)
    lines.push_back(format("{} {} {} {}", to_text(change.aspect), change.what, change.before, change.after));
  EXPECT_EQ(lines,
            (std::vector<std::string>{"data version of train 1111 2222", "code commit aaaa bbbb",
                                      "software package numpy 2.4.6 2.5.0", "software package zarr - 3.0"}));
}

TEST(Compare, values_that_vary_within_a_group_are_listed) {
  const RunComparison comparison =
      compare({run("a", 1, "x"), run("b", 1, "y")}, {run("c", 1, "y"), run("d", 1, "y")});
  ASSERT_EQ(comparison.changes.size(), 1u);
  EXPECT_EQ(comparison.changes[0].before, "x, y");
  EXPECT_EQ(comparison.changes[0].after, "y");
}

TEST(Compare, many_packages_are_counted) {
  RunFacts other = run("b", 1);
  for (int i = 0; i < 100; ++i) other.capsule.environment->packages += format("p{:03}==1\n", i);
  const RunComparison comparison = compare({run("a", 1)}, {other});
  EXPECT_EQ(comparison.changes.size(), 30u);
  EXPECT_EQ(comparison.notes, std::vector<std::string>{"70 more packages differ"});
}

TEST(Compare, missing_parts_are_noted) {
  RunFacts lost = run("b", 1);
  lost.job.reset();
  lost.capsule.code.reset();
  lost.state.state = record::State::failed;
  lost.state_word = "failed";
  const RunComparison comparison = compare({run("a", 1)}, {lost});
  EXPECT_EQ(comparison.notes, (std::vector<std::string>{"b is failed", "b: its job file cannot be read",
                                                        "b: its code is unknown"}));
}

TEST(Guard, reads_direction_and_tolerance_in_any_order) {
  EXPECT_EQ(parse_guard("val/loss")->metric, "val/loss");
  EXPECT_EQ(parse_guard("a:b")->metric, "a:b");
  EXPECT_EQ(parse_guard("score:higher:1%")->better, Better::higher);
  EXPECT_DOUBLE_EQ(parse_guard("score:2.5%:lower")->tolerance, 0.025);
  for (const char* text : {"", ":lower", "loss:x%", "loss:-1%", "loss:nan%", "loss:1e9%"})
    EXPECT_FALSE(parse_guard(text).ok()) << text;
}

TEST(Guard, a_worse_result_is_not_met) {
  const RunComparison comparison = compare({run("a", 1)}, {run("b", 1.05)});
  EXPECT_FALSE(check_guard(*parse_guard("loss"), comparison)->is_met);
  EXPECT_FALSE(check_guard(*parse_guard("loss:4%"), comparison)->is_met);
  EXPECT_TRUE(check_guard(*parse_guard("loss:6%"), comparison)->is_met);
  EXPECT_TRUE(check_guard(*parse_guard("loss:higher"), comparison)->is_met);
  EXPECT_EQ(check_guard(*parse_guard("loss:4%"), comparison)->text, "loss: 5.00 % worse, 4.00 % are allowed");
}

TEST(Guard, chance_is_not_worse) {
  const RunComparison comparison = compare({run("a", 1.0), run("b", 1.2)}, {run("c", 1.05), run("d", 1.25)});
  const auto verdict = check_guard(*parse_guard("loss"), comparison);
  EXPECT_TRUE(verdict->is_met);
  EXPECT_THAT(verdict->text, HasSubstr("within chance"));
}

TEST(Guard, an_unknown_metric_or_direction_is_refused) {
  RunFacts odd = run("a", 1);
  odd.metrics[0].name = "zeta";
  const RunComparison comparison = compare({odd}, {odd});
  EXPECT_EQ(check_guard(*parse_guard("loss"), comparison).status().message(),
            "no run of one side has the metric 'loss' (common metrics: zeta)");
  EXPECT_THAT(check_guard(*parse_guard("zeta"), comparison).status().to_string(),
              HasSubstr("--guard zeta:lower"));
}

}  // namespace
}  // namespace stoker::report
