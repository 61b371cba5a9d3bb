#include "report/study/scale.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::report::study {
namespace {

std::vector<std::string> labels_of(const Scale& scale) {
  std::vector<std::string> labels;
  for (const ScaleTick& tick : scale.ticks(4)) labels.push_back(tick.label);
  return labels;
}

TEST(Scale, numbers_of_several_magnitudes_are_spaced_by_their_logarithm) {
  const std::vector<double> values = {0.001, 0.01, 0.1};
  const Scale scale = Scale::of_values(values, sweep::Goal::minimize);
  EXPECT_NEAR(scale.fraction(0.01), 0.5, 1e-9);
  EXPECT_THAT(labels_of(scale), testing::ElementsAre("0.001", "0.01", "0.1"));
  EXPECT_NEAR(Scale::of_values(std::vector<double>{0.0, 1.0}, sweep::Goal::minimize).fraction(0.5), 0.5,
              1e-9);
}

TEST(Scale, values_that_are_much_worse_are_at_its_end) {
  std::vector<double> values;
  for (int i = 0; i < 99; ++i) values.push_back(i - 50);
  values.push_back(1e6);
  const Scale down = Scale::of_values(values, sweep::Goal::minimize);
  EXPECT_FALSE(down.contains(1e6));
  EXPECT_EQ(down.fraction(1e6), 1);
  EXPECT_TRUE(down.contains(40));
  // The same value is the best one if larger is better.
  const Scale up = Scale::of_values(values, sweep::Goal::maximize);
  EXPECT_TRUE(up.contains(1e6));
}

TEST(Scale, choices_have_equal_parts) {
  const sweep::Parameter parameter{
      "kind", sweep::Choices{{std::string("sgd"), std::string("adam"), true}}, {}};
  const Scale scale = Scale::of(parameter);
  EXPECT_NEAR(scale.fraction(1), 0.5, 1e-9);
  EXPECT_NEAR(scale.category_width(), 1.0 / 3, 1e-9);
  EXPECT_THAT(labels_of(scale), testing::ElementsAre("sgd", "adam", "true"));
}

TEST(Scale, equal_and_missing_values_have_an_axis) {
  const std::vector<double> equal = {2, 2, std::nan(""), INFINITY};
  const Scale scale = Scale::of_values(equal, sweep::Goal::minimize);
  EXPECT_NEAR(scale.fraction(2), 0.5, 1e-9);
  EXPECT_TRUE(std::isnan(scale.fraction(std::nan(""))));
  EXPECT_GT(labels_of(scale).size(), 1);
  EXPECT_GT(labels_of(Scale::of_values({}, sweep::Goal::maximize)).size(), 1);
}

}  // namespace
}  // namespace stoker::report::study
