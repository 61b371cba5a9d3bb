#include "train/trainer/batch_search.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

constexpr BatchLimits kRoomy{.memory = {8'000'000'000}, .ranks = 2, .samples = 100'000};

BatchTrial worked(std::uint32_t batch, double samples_per_s, std::uint64_t megabytes) {
  return {.batch = batch,
          .step_s = batch / samples_per_s,
          .samples_per_s = samples_per_s,
          .memory = {megabytes * 1'000'000},
          .failed = ""};
}

TEST(BatchSearch, begins_with_two_and_doubles) {
  EXPECT_EQ(recommend_batch({}, kRoomy).next, 2u);
  const std::vector<BatchTrial> one{worked(2, 10, 300)};
  EXPECT_EQ(recommend_batch(one, kRoomy).next, 4u);
}

TEST(BatchSearch, skips_sizes_that_cannot_fit_by_earlier_trials) {
  // 100 MB per sample on top of 1 GB: 64 need 7.4 GB, 128 need 13.8.
  const std::vector<BatchTrial> trials{worked(16, 10, 2600), worked(32, 20, 4200), worked(64, 40, 7400)};
  const BatchRecommendation recommendation = recommend_batch(trials, kRoomy);
  EXPECT_FALSE(recommendation.next);
  EXPECT_EQ(recommendation.why,
            "128: would need about 13.8 GB of the 8.00 GB of memory available to one of 2 ranks");
  EXPECT_EQ(recommendation.fastest, 64u);
  EXPECT_EQ(recommendation.fits, 70u);
}

TEST(BatchSearch, ends_when_larger_sizes_are_not_faster_and_recommends_the_smallest_fast_one) {
  const std::vector<BatchTrial> trials{worked(2, 50, 300), worked(4, 97, 310), worked(8, 100, 320),
                                       worked(16, 101, 340), worked(32, 99, 380)};
  EXPECT_EQ(recommend_batch(std::span(trials).first(4), kRoomy).next, 32u);
  const BatchRecommendation recommendation = recommend_batch(trials, kRoomy);
  EXPECT_EQ(recommendation.why, "64: the last two batches were not faster");
  EXPECT_EQ(recommendation.fastest, 4u);
}

TEST(BatchSearch, ends_with_the_data_or_a_failure) {
  const std::vector<BatchTrial> two{worked(2, 10, 300), worked(4, 20, 310)};
  EXPECT_EQ(recommend_batch(two, {.samples = 7}).why, "8: a rank has only 7 samples of the training data");
  std::vector<BatchTrial> failed = two;
  failed.push_back({.batch = 8, .failed = "killed by signal 9 (SIGKILL)"});
  const BatchRecommendation recommendation = recommend_batch(failed, kRoomy);
  EXPECT_FALSE(recommendation.next);
  EXPECT_EQ(recommendation.why, "8: killed by signal 9 (SIGKILL)");
  EXPECT_EQ(recommendation.fastest, 4u);
  EXPECT_EQ(recommend_batch(std::span(failed).last(1), kRoomy).fastest, 0u);
}

}  // namespace
}  // namespace stoker::train
