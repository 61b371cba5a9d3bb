#include "trials/rerun.h"

#include <gtest/gtest.h>

namespace stoker::trials {
namespace {

TEST(Rerun, a_value_within_one_per_cent_is_equal) {
  EXPECT_EQ(judge_reruns({0.9}, {{0.9}}), RerunVerdict::equal);
  EXPECT_EQ(judge_reruns({100}, {{100.9}}), RerunVerdict::equal);
  EXPECT_EQ(judge_reruns({100}, {{101.1}}), RerunVerdict::different);
  EXPECT_EQ(judge_reruns({-100}, {{-99.5}}), RerunVerdict::equal);
  EXPECT_EQ(judge_reruns({0}, {{0.005}}), RerunVerdict::equal);
}

TEST(Rerun, each_objective_counts) {
  EXPECT_EQ(judge_reruns({1, 2}, {{1, 2.5}}), RerunVerdict::different);
  EXPECT_DOUBLE_EQ(relative_difference({1, 2}, {1.1, 2.5}), 0.25);
}

TEST(Rerun, noise_between_reruns_explains_a_difference_as_large) {
  EXPECT_EQ(judge_reruns({1.0}, {{1.2}, {0.9}}), RerunVerdict::within_spread);
  EXPECT_EQ(judge_reruns({1.0}, {{1.2}, {1.19}}), RerunVerdict::different);
}

}  // namespace
}  // namespace stoker::trials
