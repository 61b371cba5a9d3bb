#include "record/points/points.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string line_of(const PointLine& point) {
  std::string line;
  append_point(point, &line);
  return line;
}

class PointsTest : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) {
    ASSERT_TRUE(write_file(box_.path() / name, text).ok());
  }
  RankPoints read(int rank = 0, const PointLimits& limits = {}) {
    std::vector<PointFile> files = list_point_files(attempt_);
    std::erase_if(files, [&](const PointFile& file) { return file.rank != rank; });
    return read_points(files, limits);
  }
  std::vector<double> values(std::string_view metric, int rank = 0) {
    std::vector<double> found;
    const RankPoints points = read(rank);
    if (const auto at = points.metrics.find(metric); at != points.metrics.end()) {
      for (const Point& point : at->second) found.push_back(point.value);
    }
    return found;
  }

  TempDirectory box_;
  Attempt attempt_{box_.path(), 1};
};

TEST(PointLineTest, a_line_is_printed_and_parsed) {
  const PointLine point{.time = 1763719411.52, .step = 12, .value = 0.1, .metric = "train/loss, smooth"};
  EXPECT_EQ(line_of(point), "1763719411.520000,12,0.1,train/loss, smooth\n");
  const auto back = parse_point("1763719411.520000,12,0.1,train/loss, smooth");
  ASSERT_TRUE(back);
  EXPECT_DOUBLE_EQ(back->time, 1763719411.52);
  EXPECT_EQ(back->step, 12);
  EXPECT_EQ(back->value, 0.1);
  EXPECT_EQ(back->metric, "train/loss, smooth");
}

TEST(PointLineTest, nan_and_infinity_are_values) {
  EXPECT_EQ(line_of({.time = 0, .step = 1, .value = std::nan(""), .metric = "a"}), ",1,nan,a\n");
  EXPECT_TRUE(std::isnan(parse_point(",1,nan,a")->value));
  EXPECT_EQ(parse_point(",1,-inf,a")->value, -std::numeric_limits<double>::infinity());
}

TEST(PointLineTest, a_line_without_a_step_is_a_summary) {
  EXPECT_EQ(line_of({.time = 0, .step = {}, .value = 1, .metric = "best"}), ",,1,best\n");
  EXPECT_FALSE(parse_point("3.5,,1,best")->step);
}

TEST(PointLineTest, steps_of_awk_may_have_an_exponent) {
  EXPECT_EQ(parse_point(",1e+06,0.5,a")->step, 1'000'000);
  EXPECT_FALSE(parse_point(",1.5,0.5,a"));
}

TEST(PointLineTest, damaged_lines_are_refused) {
  for (const std::string_view line :
       {"", ",", ",1,2", "x,1,2,a", ",-1,2,a", ",1,,a", ",1,2,", ",1,2x,a", ",1,2,a\tb", "inf,1,2,a"}) {
    EXPECT_FALSE(parse_point(line)) << line;
  }
}

TEST(PointLineTest, names_have_limits) {
  EXPECT_TRUE(check_metric_name("précision (val), %").ok());
  EXPECT_EQ(check_metric_name("").message(), "metric '': a name is required");
  EXPECT_EQ(check_metric_name("a\nb").message(), "metric 'a\\x0ab': its name contains a control character");
  EXPECT_EQ(check_metric_name(std::string(257, 'a')).message(),
            "metric 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…': its name has 257 bytes, at most 256 are "
            "recorded");
}

TEST_F(PointsTest, the_later_line_of_a_step_counts) {
  write("points-0000.csv", "time,step,value,metric\n1,1,10,a\n2,2,20,a\n3,1,11,a\n4,3,30,a\n");
  EXPECT_THAT(values("a"), ElementsAre(11, 20, 30));
}

TEST_F(PointsTest, files_of_several_processes_are_joined_in_their_order) {
  write("points-0000-10.csv", ",1,10,a\n");
  write("points-0000-2.csv", ",1,2,a\n,2,22,a\n");
  write("points-0000.csv", ",1,1,a\n,3,33,a\n");
  EXPECT_THAT(values("a"), ElementsAre(10, 22, 33));
}

TEST_F(PointsTest, a_logged_metric_replaces_the_same_one_of_a_tracker_or_log) {
  write("points-0000-log.csv", ",1,1,a\n,1,5,only_in_the_log\n");
  write("points-0000-tensorboard.csv", ",1,2,a\n,2,2,a\n");
  EXPECT_THAT(values("a"), ElementsAre(2, 2));
  write("points-0000.csv", ",1,3,a\n");
  EXPECT_THAT(values("a"), ElementsAre(3));
  EXPECT_THAT(values("only_in_the_log"), ElementsAre(5));
}

TEST_F(PointsTest, damaged_lines_are_counted_and_a_torn_last_line_is_not) {
  write("points-0000.csv",
        "time,step,value,metric\n,1,1,a\nhello\n,2,2,a\n,3,3,a\n" + std::string(2000, 'x') + "\n,4,4");
  const RankPoints points = read();
  EXPECT_THAT(points.metrics.at("a"), SizeIs(3));
  EXPECT_EQ(points.damaged, 2u);
}

TEST_F(PointsTest, the_end_of_a_file_is_enough_for_the_last_values) {
  std::string text = "time,step,value,metric\n";
  for (int step = 0; step < 10000; ++step) text += format(",{},{},a\n", step, step);
  write("points-0000.csv", text);
  const RankPoints points = read(0, {.tail_bytes = 1000});
  EXPECT_EQ(points.metrics.at("a").back().step, 9999);
  EXPECT_THAT(points.metrics.at("a"), SizeIs(::testing::Lt(200u)));
  EXPECT_EQ(points.damaged, 0u);
}

TEST_F(PointsTest, the_number_of_metrics_is_bounded) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += format(",1,1,m{}\n", i);
  write("points-0000.csv", text);
  const RankPoints points = read(0, {.metrics = 5});
  EXPECT_THAT(points.metrics, SizeIs(5));
  EXPECT_TRUE(points.truncated);
}

TEST_F(PointsTest, other_files_are_ignored) {
  write("points-.csv", ",1,1,a\n");
  write("points-x.csv", ",1,1,a\n");
  write("points-0000.txt", ",1,1,a\n");
  write("metrics-0000.csv", "a\n1\n");
  EXPECT_THAT(list_point_files(attempt_), IsEmpty());
}

TEST_F(PointsTest, last_values_are_combined_over_ranks) {
  write("points-0000.csv", ",1,9,loss\n,2,1,loss\n");
  write("points-0001.csv", ",2,3,loss\n,3,inf,grad\n");
  write("points-0002.csv", ",3,inf,grad\n,3,nan,bad\n");
  const std::vector<LastValue> values = read_last_values(attempt_);
  ASSERT_THAT(values, SizeIs(3));
  EXPECT_TRUE(std::isnan(values[0].mean));
  EXPECT_EQ(values[1].metric, "grad");
  EXPECT_EQ(values[1].mean, std::numeric_limits<double>::infinity());
  EXPECT_EQ(values[2].mean, 2);
  EXPECT_EQ(values[2].lowest, 1);
  EXPECT_EQ(values[2].highest, 3);
  EXPECT_EQ(values[2].ranks, 2);
  EXPECT_EQ(values[2].step, 2);
}

TEST(MainMetricTest, is_the_loss) {
  const std::vector<std::string> names = {"eval_loss", "loss", "lr"};
  EXPECT_EQ(main_metric(names), "loss");
  EXPECT_EQ(main_metric(std::vector<std::string>{"acc", "val/Loss"}), "val/Loss");
  EXPECT_EQ(main_metric(std::vector<std::string>{"acc"}), "");
}

}  // namespace
}  // namespace stoker::record
