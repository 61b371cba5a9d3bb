#include "train/loss/device_accuracy.h"

#include <limits>

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "train/loss/accuracy.h"

namespace stoker::train {
namespace {

Correct counted(const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor counts = correct_on_device(scores, labels);
  return {counts[0].item<std::int64_t>(), counts[1].item<std::int64_t>()};
}

TEST(DeviceAccuracy, counts_as_on_the_host_with_many_ties) {
  for (int trial = 0; trial < 20; ++trial) {
    const at::Tensor scores = at::randint(4, {200, 12}).to(at::kFloat);  // few values: ties
    const at::Tensor labels = at::randint(12, {200}, at::kLong);
    const Correct expected = count_correct({scores.const_data_ptr<float>(), 2400},
                                           {labels.const_data_ptr<std::int64_t>(), 200}, 12);
    const Correct found = counted(scores, labels);
    EXPECT_EQ(found.top1, expected.top1);
    EXPECT_EQ(found.top5, expected.top5);
  }
}

TEST(DeviceAccuracy, nan_counts_as_the_largest) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor scores = at::tensor({kNan, 1.0F, 2.0F}).reshape({1, 3});
  EXPECT_EQ(counted(scores, at::tensor({2}, at::kLong)).top1, 0);
  EXPECT_EQ(counted(scores, at::tensor({2}, at::kLong)).top5, 1);
  EXPECT_EQ(counted(scores, at::tensor({0}, at::kLong)).top1, 0);
}

}  // namespace
}  // namespace stoker::train
