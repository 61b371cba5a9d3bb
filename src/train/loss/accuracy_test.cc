#include "train/loss/accuracy.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Correct one(std::vector<float> scores, std::int64_t label) {
  const std::int64_t labels[] = {label};
  return count_correct(scores, labels, static_cast<std::int64_t>(scores.size()));
}

TEST(Accuracy, the_largest_score_is_top_1) {
  EXPECT_EQ(one({0, 2, 1}, 1).top1, 1);
  EXPECT_EQ(one({0, 2, 1}, 2).top1, 0);
  EXPECT_EQ(one({0, 2, 1}, 2).top5, 1);
}

TEST(Accuracy, of_equal_scores_the_first_is_top_1_as_in_argmax) {
  EXPECT_EQ(one({1, 1, 1, 0}, 0).top1, 1);
  EXPECT_EQ(one({1, 1, 1, 0}, 1).top1, 0);
  EXPECT_EQ(one({0, 2, 2, 2}, 1).top1, 1);
}

TEST(Accuracy, the_sixth_best_is_not_among_five) {
  EXPECT_EQ(one({6, 5, 4, 3, 2, 1}, 4).top5, 1);
  EXPECT_EQ(one({6, 5, 4, 3, 2, 1}, 5).top5, 0);
}

TEST(Accuracy, nan_counts_as_the_largest_as_in_argmax) {
  EXPECT_EQ(one({kNan, 1, 2}, 0).top1, 1);
  EXPECT_EQ(one({1, kNan, 0}, 1).top1, 1);
  EXPECT_EQ(one({1, kNan, 0}, 0).top1, 0);
}

TEST(Accuracy, counts_over_a_batch) {
  const std::vector<float> scores{0, 1, 1, 0, 3, 2};
  const std::int64_t labels[] = {1, 1, 0};
  EXPECT_EQ(count_correct(scores, labels, 2).top1, 2);
  EXPECT_EQ(count_correct(scores, labels, 2).top5, 3);
}

}  // namespace
}  // namespace stoker::train
