#include "torch/data_parallel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/test_ranks.h"

namespace stoker::torch {
namespace {

using testing::HasSubstr;

at::Tensor parameter(std::vector<std::int64_t> shape, double value) {
  return at::full(shape, value, at::kFloat).set_requires_grad(true);
}

Status expect_all(const at::Tensor& tensor, float value) {
  if (!tensor.defined()) return internal("undefined, not {}", value);
  const float low = tensor.min().item<float>(), high = tensor.max().item<float>();
  return low == value && high == value ? Status() : internal("{} to {}, not {}", low, high, value);
}

void expect_ok(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

float mine(const ProcessGroup& group) { return static_cast<float>(group.rank().value + 1); }

TEST(DataParallel, starts_all_ranks_from_rank_0s_values) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({4}, mine(group));
    const at::Tensor buffer = at::full({2}, 10 * mine(group), at::kFloat);
    RETURN_IF_ERROR(DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}}, {}).status());
    RETURN_IF_ERROR(expect_all(weight.detach(), 1));
    return expect_all(buffer, 10);
  }));
}

TEST(DataParallel, averages_gradients_and_takes_rank_0s_buffers) {
  for (const Gradients gradients : {Gradients::copied, Gradients::bucketed}) {
    expect_ok(on_ranks(2, [gradients](ProcessGroup& group) -> Status {
      const at::Tensor weight = parameter({4}, 1);
      const at::Tensor buffer = at::zeros({2}, at::kFloat);
      OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                                {.gradients = gradients}));
      for (int step = 0; step < 4; ++step) {
        parallel->zero_grad();
        buffer.fill_(10 * mine(group));
        OK_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
        RETURN_IF_ERROR(expect_all(buffer, 10));
        RETURN_IF_ERROR(parallel->backward(loss));
        RETURN_IF_ERROR(expect_all(weight.grad(), 1.5));
      }
      return parallel->bucket_bytes() == std::vector<std::int64_t>{16} ? Status() : internal("other buckets");
    }));
  }
}

TEST(DataParallel, own_buffers_stay_own) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({1}, 1);
    const at::Tensor buffer = at::zeros({1}, at::kFloat);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                              {.buffers = Buffers::own}));
    buffer.fill_(mine(group));
    OK_OR_RETURN(loss, parallel->forward([&] { return weight.sum(); }));
    RETURN_IF_ERROR(parallel->backward(loss));
    RETURN_IF_ERROR(expect_all(buffer, mine(group)));
    RETURN_IF_ERROR(parallel->take_buffers());
    return expect_all(buffer, 1);
  }));
}

TEST(DataParallel, without_sync_gradients_add_up_until_the_next_step_with_it) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({4}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {}, {}));
    for (int step = 0; step < 3; ++step) {
      parallel->zero_grad();
      const auto backward = [&]() -> Status {
        OK_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
        return parallel->backward(loss);
      };
      {
        const DataParallel::NoSync no_sync(*parallel);
        RETURN_IF_ERROR(backward());
        RETURN_IF_ERROR(expect_all(weight.grad(), mine(group)));
      }
      RETURN_IF_ERROR(backward());
      RETURN_IF_ERROR(expect_all(weight.grad(), 3));
    }
    return {};
  }));
}

TEST(DataParallel, finds_parameters_that_a_rank_did_not_use) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {.unused = Unused::search}));
    for (int step = 0; step < 4; ++step) {
      parallel->zero_grad();
      // Rank 0 uses b in even steps, rank 1 in odd ones.
      const bool uses_b = (step + group.rank().value) % 2 == 0;
      OK_OR_RETURN(loss, parallel->forward([&] { return uses_b ? (a * b).sum() : a.sum(); }));
      RETURN_IF_ERROR(parallel->backward(loss));
      RETURN_IF_ERROR(expect_all(a.grad(), 1));
      RETURN_IF_ERROR(expect_all(b.grad(), 0.5));
    }
    return {};
  }));
}

TEST(DataParallel, refuses_models_of_different_shape) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({group.rank().value + 2}, 1);
    return DataParallel::wrap(group, {{"weight", weight}}, {}, {}).status();
  });
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 1: comparing the model between ranks"));
}

TEST(DataParallel, of_one_rank_is_the_model_alone) {
  auto group = ProcessGroup::connect({});
  ASSERT_TRUE(group.ok());
  const at::Tensor weight = parameter({4}, 1);
  auto parallel = DataParallel::wrap(**group, {{"weight", weight}}, {}, {});
  ASSERT_TRUE(parallel.ok());
  auto loss = (*parallel)->forward([&] { return (weight * 3).sum(); });
  ASSERT_TRUE(loss.ok());
  EXPECT_TRUE((*parallel)->backward(*loss).ok());
  EXPECT_TRUE(expect_all(weight.grad(), 3).ok());
  EXPECT_EQ((*parallel)->waited_s(), 0);
  EXPECT_THAT((*parallel)->bucket_bytes(), testing::IsEmpty());
}

TEST(DataParallel, an_exception_in_the_model_is_an_error) {
  auto group = ProcessGroup::connect({});
  auto parallel = DataParallel::wrap(**group, {{"weight", parameter({4}, 1)}}, {}, {});
  const auto output = (*parallel)->forward([]() -> at::Tensor { return at::ones({2}).add(at::ones({3})); });
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.status().message(),
            "forward pass: The size of tensor a (2) must match the size of tensor b (3) at non-singleton "
            "dimension 0");
}

}  // namespace
}  // namespace stoker::torch
