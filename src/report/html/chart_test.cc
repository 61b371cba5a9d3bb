#include "report/html/chart.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/encode.h"
#include "report/html/markup.h"

namespace stoker::report::html {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Chart line_chart(std::vector<double> x, std::vector<double> y) {
  Chart chart;
  chart.title = "Loss";
  chart.source = "metrics.csv";
  chart.x_name = "step";
  chart.lines.push_back({"training", "s0", std::move(x), std::move(y), false, false});
  return chart;
}

TEST(Chart, draws_a_line_across_the_whole_width) {
  EXPECT_THAT(draw(line_chart({0, 50, 100}, {2, 1, 0})),
              HasSubstr("d=\"M0.0 0.0L500.0 100.0L1000.0 200.0\""));
}

TEST(Chart, breaks_the_line_where_there_is_no_number) {
  EXPECT_THAT(draw(line_chart({0, 25, 50, 75, 100}, {2, 2, kNan, 1, 1})),
              HasSubstr("d=\"M0.0 0.0L250.0 0.0M750.0 100.0L1000.0 100.0\""));
}

TEST(Chart, is_empty_below_two_points_or_without_width) {
  EXPECT_EQ(draw(line_chart({}, {})), "");
  EXPECT_EQ(draw(line_chart({1}, {1})), "");
  EXPECT_EQ(draw(line_chart({1, 1}, {1, 2})), "");
  EXPECT_EQ(draw(line_chart({1, 2}, {kNan, kNan})), "");
  EXPECT_EQ(draw(line_chart({1, std::numeric_limits<double>::infinity()}, {kNan, 1})), "");
}

TEST(Chart, survives_constant_huge_and_negative_values) {
  for (double value : {0.0, -3.0, 1e300, -1e300, 1e-300}) {
    EXPECT_THAT(draw(line_chart({1, 2}, {value, value})), HasSubstr("<path")) << value;
  }
}

TEST(Chart, escapes_every_name) {
  Chart chart = line_chart({1, 2}, {1, 2});
  chart.title = "<script>";
  chart.source = "\"'><img>";
  chart.lines[0].name = "</svg>\"\\";
  chart.marks.push_back({1.5, "<i>"});
  const std::string html = draw(chart);
  for (std::string_view hostile : {"<script>", "<img>", "</svg>\"", "<i>", "'>"}) {
    EXPECT_THAT(html, Not(HasSubstr(std::string(hostile)))) << hostile;
  }
}

TEST(Chart, thinning_keeps_the_mean) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(i);
    y.push_back(i % 2);
  }
  downsample(x, y, 100);
  EXPECT_EQ(x.size(), 100u);
  for (double value : y) EXPECT_EQ(value, 0.5);
}

TEST(Chart, a_bar_shares_its_width_by_time) {
  RankTime time;
  time.seconds[static_cast<int>(TimePart::data)] = 1;
  time.seconds[static_cast<int>(TimePart::forward)] = 3;
  const std::string bar = draw_bar(time, 8);
  EXPECT_THAT(bar, HasSubstr("<rect class=\"p-data\" x=\"0.000%\" width=\"12.500%\""));
  EXPECT_THAT(bar, HasSubstr("<rect class=\"p-forward\" x=\"12.500%\" width=\"37.500%\""));
}

TEST(Markup, policy_hash_is_base64_of_sha256) {
  EXPECT_EQ(policy_hash("alert('Hello, world.');"), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
}

TEST(Markup, escapes_what_html_reads) {
  EXPECT_EQ(escape_html("<a href='\"&\">"), "&lt;a href=&#39;&quot;&amp;&quot;&gt;");
}

}  // namespace
}  // namespace stoker::report::html
