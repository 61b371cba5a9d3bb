// The trainer's loss is libtorch's function as it stands: this pins its arguments' meaning to Python's.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "torch/test_golden.h"

namespace stoker::torch {
namespace {

TEST(CrossEntropy, means_and_sums_are_pythons) {
  const nlohmann::json reference = golden("losses.json");
  std::vector<float> logits;
  for (const auto& row : reference.at("logits")) {
    for (const auto& value : row) logits.push_back(value.get<float>());
  }
  std::vector<std::int64_t> labels = reference.at("targets").get<std::vector<std::int64_t>>();
  const auto samples = static_cast<std::int64_t>(labels.size());
  const at::Tensor scores = at::from_blob(logits.data(), {samples, 10}, at::kFloat);
  const at::Tensor targets = at::from_blob(labels.data(), {samples}, at::kLong);
  int compared = 0;
  for (const auto& row : reference.at("rows")) {
    if (row.size() > 4 || row.at("label_smoothing") != 0.0 || row.at("reduction") == "none") continue;
    if (row.contains("weight") || row.contains("mixup") || row.contains("soft_targets")) continue;
    const auto reduction = row.at("reduction") == "sum" ? at::Reduction::Sum : at::Reduction::Mean;
    EXPECT_NEAR(at::cross_entropy_loss(scores, targets, {}, reduction).item<double>(),
                row.at("loss")[0].get<double>(), 1e-6);
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace stoker::torch
