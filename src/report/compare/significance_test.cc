#include "report/compare/significance.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::report {
namespace {

// Student's sleep data (1908), as in R: t.test(extra ~ group, data = sleep) prints the interval.
const std::vector<double> kFirst = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSecond = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(Significance, agrees_with_published_values) {
  const auto found = significance(kFirst, kSecond);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->lowest, -0.2054832, 1e-6);
  EXPECT_NEAR(found->highest, 3.3654832, 1e-6);
  EXPECT_NEAR(found->p, 15048.0 / 184756, 1e-12);
  EXPECT_TRUE(found->may_be_chance());
}

TEST(Significance, order_of_the_groups_changes_the_sign_alone) {
  const auto found = significance(kSecond, kFirst);
  EXPECT_NEAR(found->lowest, -3.3654832, 1e-6);
  EXPECT_NEAR(found->p, 15048.0 / 184756, 1e-12);
}

TEST(Significance, three_runs_on_each_side_can_differ) {
  const std::vector<double> before = {1.00, 1.01, 0.99};
  const std::vector<double> after = {0.90, 0.91, 0.89};
  const auto found = significance(before, after);
  EXPECT_DOUBLE_EQ(found->p, 0.1);
  EXPECT_FALSE(found->may_be_chance());
  EXPECT_TRUE(significance(before, before)->may_be_chance());
  EXPECT_DOUBLE_EQ(significance(before, before)->p, 1);
}

TEST(Significance, equal_values_have_no_interval) {
  const std::vector<double> one(3, 1.0);
  const std::vector<double> two(2, 2.0);
  const auto found = significance(one, two);
  EXPECT_EQ(found->lowest, 1);
  EXPECT_EQ(found->highest, 1);
  EXPECT_FALSE(found->may_be_chance());
  EXPECT_EQ(significance(one, one)->lowest, 0);
}

TEST(Significance, large_groups_are_sampled) {
  std::vector<double> before;
  std::vector<double> after;
  for (int i = 0; i < 40; ++i) {
    before.push_back(i % 7);
    after.push_back(i % 7 + 3);
  }
  const auto found = significance(before, after);
  EXPECT_LT(found->p, 1e-3);
  EXPECT_GT(found->p, 0);
  EXPECT_EQ(found->p, significance(before, after)->p);
}

TEST(Significance, needs_two_finite_values_on_each_side) {
  const std::vector<double> one = {1};
  const std::vector<double> two = {1, 2};
  EXPECT_FALSE(significance(one, two));
  EXPECT_FALSE(significance(two, one));
  EXPECT_FALSE(significance({}, {}));
  EXPECT_FALSE(significance(two, std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(std::isnan(mean_of({})));
  EXPECT_EQ(deviation_of(one), 0);
}

}  // namespace
}  // namespace stoker::report
