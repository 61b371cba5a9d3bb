#include "report/overview.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html/overview_section.h"
#include "report/html/page.h"
#include "report/text.h"

namespace stoker::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RunFacts run(const std::string& letters, double rate, double accuracy, const std::string& state = "done") {
  RunFacts facts;
  facts.id = "2026-01-01T10-00-00_nogit_net_" + letters;
  facts.description.name = "net";
  facts.state_word = state;
  facts.running_s = 60;
  facts.job.emplace();
  facts.job->params["rate"] = format("{}", rate);
  facts.job->params["depth"] = "18";
  MetricCurve curve{"val_acc", {}};
  for (std::int64_t step = 1; step <= 4; ++step)
    curve.points.push_back({.step = step, .run_time = 1, .mean = accuracy * static_cast<double>(step) / 4});
  if (std::isfinite(accuracy)) facts.metrics.push_back(std::move(curve));
  return facts;
}

std::vector<RunFacts> three_runs() {
  return {run("aaaa", 0.1, 0.5), run("bbbb", 0.01, 0.75), run("cccc", 1, NAN, "failed")};
}

TEST(Overview, shows_the_settings_that_differ_and_the_best_run_first) {
  const Overview overview = overview_of_runs(three_runs());
  EXPECT_THAT(overview.settings, ElementsAre("params.rate"));
  ASSERT_EQ(overview.results.size(), 1u);
  EXPECT_EQ(overview.results[0].name, "val_acc");
  EXPECT_EQ(overview.results[0].better, Better::higher);
  ASSERT_EQ(overview.rows.size(), 3u);
  EXPECT_EQ(overview.rows[0].name, "net bbbb");
  EXPECT_THAT(overview.rows[0].settings, ElementsAre("0.01"));
  EXPECT_EQ(overview.rows[1].name, "net aaaa");
  EXPECT_EQ(overview.rows[2].name, "net cccc");
  EXPECT_TRUE(std::isnan(overview.rows[2].results[0]));
  EXPECT_EQ(count_text(overview), "3 runs: 2 done, 1 failed");
}

TEST(Overview, a_loss_is_better_when_lower) {
  std::vector<RunFacts> runs = three_runs();
  for (RunFacts& each : runs)
    for (MetricCurve& curve : each.metrics) curve.name = "val_loss";
  EXPECT_EQ(overview_of_runs(runs).rows[0].name, "net aaaa");
}

TEST(Overview, a_metric_of_unknown_direction_keeps_the_order) {
  std::vector<RunFacts> runs = three_runs();
  for (RunFacts& each : runs)
    for (MetricCurve& curve : each.metrics) curve.name = "depth_of_something";
  EXPECT_EQ(overview_of_runs(runs).rows[0].name, "net aaaa");
}

TEST(Overview, a_secret_setting_is_hidden) {
  std::vector<RunFacts> runs = three_runs();
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].job->params["api_token"] = format("hunter{}", i);
  EXPECT_THAT(to_html(runs), Not(HasSubstr("hunter")));
}

TEST(Overview, the_table_counts_omitted_rows) {
  const Table table = overview_table(overview_of_runs(three_runs()), 2);
  EXPECT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.source, HasSubstr("2 of 3"));
  EXPECT_THAT(table.rows[0], ElementsAre("net bbbb", "0.01", "0.750", "1 min 00 s", "done"));
}

TEST(Overview, of_an_array_has_a_row_for_each_task) {
  RunFacts array = run("dddd", 1, NAN);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    array.tasks.push_back({.number = i,
                           .values = {{"lr", format("{}", i)}, {"same", "1"}},
                           .state = i == 3 ? "failed" : "done",
                           .exit_code = {},
                           .reason = i == 3 ? "exit code 7" : "",
                           .host = "n1",
                           .started = 10,
                           .ended = 20,
                           .run = i == 2 ? run("eeee", 1, 0.5) : RunFacts{}});
  }
  const Overview overview = overview_of_tasks(array);
  EXPECT_EQ(count_text(overview), "3 tasks: 2 done, 1 failed");
  EXPECT_THAT(overview.settings, ElementsAre("lr"));
  EXPECT_EQ(overview.rows[0].name, "task 2");
  EXPECT_EQ(overview_table(overview, 9).rows[2].back(), "failed: exit code 7");
  EXPECT_THAT(to_plain_text(std::vector{array}), HasSubstr("task 2"));
  EXPECT_THAT(to_html(std::vector{array}), HasSubstr("task 3"));
}

TEST(Overview, curves_of_all_runs_share_a_chart_and_settings_have_axes) {
  std::vector<RunFacts> runs = three_runs();
  runs.push_back(run("ffff", 0.001, 0.25));
  const std::string page = to_html(runs);
  EXPECT_THAT(page, HasSubstr("4 runs: 3 done, 1 failed"));
  EXPECT_THAT(page, HasSubstr("<span class=\"key s0\">net bbbb</span>"));
  EXPECT_THAT(page, HasSubstr("aria-label=\"parallel coordinates\""));
  EXPECT_THAT(page, HasSubstr("params.rate"));
  // Two results are too few for axes.
  EXPECT_THAT(html::draw_parallel(overview_of_runs(three_runs())), IsEmpty());
}

TEST(Overview, many_runs_are_gray_but_the_best) {
  std::vector<RunFacts> runs;
  for (int i = 0; i < 100; ++i) runs.push_back(run(format("r{}", i), 0.001 * (i + 1), 0.001 * i));
  const Overview overview = overview_of_runs(runs);
  EXPECT_EQ(html::colored_rows(overview), 5u);
  const std::string page = to_html(runs);
  EXPECT_THAT(page, HasSubstr("<span class=\"key s4\">net r95</span>"));
  EXPECT_THAT(page, HasSubstr("36 further ones are not drawn."));
}

TEST(Overview, hostile_names_are_escaped) {
  std::vector<RunFacts> runs = three_runs();
  for (RunFacts& each : runs) {
    each.description.name = "<script>alert(1)</script>";
    each.state_word = "<b>";
    for (MetricCurve& curve : each.metrics) curve.name = "acc<img src=x>\x1b[31m";
    each.job->params["<i>"] = each.id;
  }
  runs.push_back(runs[0]);
  const std::string page = to_html(runs);
  for (const char* text : {"<script>alert", "<img", "<i>0", "<b></td>", "\x1b"})
    EXPECT_THAT(page, Not(HasSubstr(text)));
}

TEST(Overview, the_cause_of_a_failure_is_shown_first) {
  RunFacts failed = run("gggg", 1, NAN, "failed");
  failed.cause = CauseFacts{.rule = "host-memory",
                            .text = "rank 1 (n2): killed for memory",
                            .is_likely = true,
                            .evidence = {{"rank-0001.log:7", "Killed"}},
                            .cure = "more memory"};
  EXPECT_THAT(to_html(std::vector{failed}), HasSubstr("Likely cause: rank 1 (n2): killed for memory"));
  EXPECT_THAT(to_plain_text(std::vector{failed}),
              HasSubstr("  likely cause: rank 1 (n2): killed for memory\n    rank-0001.log:7  Killed\n"
                        "    try: more memory\n"));
}

}  // namespace
}  // namespace stoker::report
