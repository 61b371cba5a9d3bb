#include "stoker/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/data_parallel.h"
#include "stoker/exceptions.h"
#include "train/comm/test_ranks.h"

namespace stoker::train {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kChannels = 5;

BatchNormTensors fresh(const at::Tensor& weight, const at::Tensor& bias) {
  return {weight.clone().set_requires_grad(true), bias.clone().set_requires_grad(true),
          at::zeros({kChannels}), at::ones({kChannels})};
}

Status expect_near(std::string_view what, const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return internal("{}: another shape", what);
  if (found.numel() == 0) return {};
  const double off = (found - expected).abs().max().item<double>();
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  return off <= 2e-6 * scale ? Status() : internal("{}: off by {} of {}", what, off, scale);
}

// One process with the whole batch; each rank must get the same rows.
struct Whole {
  at::Tensor input, weights_of_loss, output;
  BatchNormTensors norm;

  explicit Whole(std::int64_t batch)
      : input((at::randn({batch, kChannels, 4, 3}) * 3 + 10).set_requires_grad(true)),
        weights_of_loss(at::randn({batch, kChannels, 4, 3})),
        norm(fresh(at::rand({kChannels}) + 0.5, at::randn({kChannels}))) {
    output = at::batch_norm(input, norm.weight, norm.bias, norm.running_mean, norm.running_var, true,
                            norm.momentum, norm.epsilon, false);
    (output * weights_of_loss).sum().backward();
  }
};

Status rank_is_part_of(const Whole& whole, ProcessGroup& group, const std::vector<std::int64_t>& sizes) {
  const auto rank = static_cast<std::size_t>(group.rank().value);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < rank; ++i) begin += sizes[i];
  const std::int64_t end = begin + sizes[rank];
  const at::Tensor input = whole.input.detach().slice(0, begin, end).clone().set_requires_grad(true);
  const BatchNormTensors norm = fresh(whole.norm.weight.detach(), whole.norm.bias.detach());
  const at::Tensor output = sync_batch_norm(group, input, norm);
  (output * whole.weights_of_loss.slice(0, begin, end)).sum().backward();
  STOKER_RETURN_IF_ERROR(expect_near("output", output.detach(), whole.output.detach().slice(0, begin, end)));
  STOKER_RETURN_IF_ERROR(expect_near("gradient", input.grad(), whole.input.grad().slice(0, begin, end)));
  STOKER_RETURN_IF_ERROR(expect_near("running mean", norm.running_mean, whole.norm.running_mean));
  STOKER_RETURN_IF_ERROR(expect_near("running variance", norm.running_var, whole.norm.running_var));
  // Each rank has the gradients of its part of the loss.
  at::Tensor of_weight = norm.weight.grad().to(at::kDouble), of_bias = norm.bias.grad().to(at::kDouble);
  STOKER_RETURN_IF_ERROR(group.all_reduce_sum(of_weight));
  STOKER_RETURN_IF_ERROR(group.all_reduce_sum(of_bias));
  STOKER_RETURN_IF_ERROR(
      expect_near("weight's gradient", of_weight, whole.norm.weight.grad().to(at::kDouble)));
  return expect_near("bias's gradient", of_bias, whole.norm.bias.grad().to(at::kDouble));
}

class Batches : public testing::TestWithParam<std::vector<std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(SyncBatchNorm, Batches,
                         testing::Values(std::vector<std::int64_t>{4, 4}, std::vector<std::int64_t>{5, 1, 2},
                                         std::vector<std::int64_t>{3, 0, 1, 7}));

TEST_P(Batches, are_normalized_as_in_one_process) {
  std::int64_t total = 0;
  for (const std::int64_t size : GetParam()) total += size;
  const Whole whole(total);
  for (const Status& status : on_ranks(static_cast<int>(GetParam().size()), [&](ProcessGroup& group) {
         return rank_is_part_of(whole, group, GetParam());
       })) {
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(SyncBatchNorm, one_value_per_channel_over_all_ranks_is_too_few) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) {
    const at::Tensor input = at::zeros({group.rank().value == 0 ? 1 : 0, kChannels});
    return catch_exceptions(Code::internal, "forward", [&] {
      (void)sync_batch_norm(group, input, fresh(at::ones({kChannels}), at::zeros({kChannels})));
    });
  });
  EXPECT_EQ(
      statuses[0].message(),
      "forward: synchronized batch norm: expected more than one value per channel over all ranks, found 1");
}

TEST(SyncBatchNorm, names_the_rank_that_skips_the_layer) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    if (group.rank().value == 1) return {};
    return catch_exceptions(Code::internal, "forward", [&] {
      (void)sync_batch_norm(group, at::randn({2, kChannels}),
                            fresh(at::ones({kChannels}), at::zeros({kChannels})));
    });
  });
  EXPECT_EQ(statuses[0].code(), Code::unavailable);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("forward: rank 1 left ("));
}

TEST(SyncBatchNorm, is_enabled_by_data_parallel_options) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = at::ones({1}).set_requires_grad(true);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {},
                                                         {.batch_norm_sync = BatchNormSync::all_ranks}));
    bool was_set = false;
    STOKER_RETURN_IF_ERROR(parallel
                               ->forward([&] {
                                 was_set = SyncBatchNormScope::group() == &group;
                                 return weight.sum();
                               })
                               .status());
    return was_set && SyncBatchNormScope::group() == nullptr ? Status() : internal("not set, or left set");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

}  // namespace
}  // namespace stoker::train
