#include "stoker/data_parallel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/comm/test_ranks.h"

namespace stoker::train {
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
    STOKER_RETURN_IF_ERROR(DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}}, {}).status());
    STOKER_RETURN_IF_ERROR(expect_all(weight.detach(), 1));
    return expect_all(buffer, 10);
  }));
}

TEST(DataParallel, averages_gradients_and_broadcasts_rank_0s_buffers) {
  for (const GradientStorage gradients : {GradientStorage::separate, GradientStorage::bucket_view}) {
    expect_ok(on_ranks(2, [gradients](ProcessGroup& group) -> Status {
      const at::Tensor weight = parameter({4}, 1);
      const at::Tensor buffer = at::zeros({2}, at::kFloat);
      STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                                           {.gradient_storage = gradients}));
      for (int step = 0; step < 4; ++step) {
        parallel->zero_grad();
        buffer.fill_(10 * mine(group));
        STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
        STOKER_RETURN_IF_ERROR(expect_all(buffer, 10));
        STOKER_RETURN_IF_ERROR(parallel->backward(loss));
        STOKER_RETURN_IF_ERROR(expect_all(weight.grad(), 1.5));
      }
      return parallel->bucket_bytes() == std::vector<std::int64_t>{16} ? Status() : internal("other buckets");
    }));
  }
}

TEST(DataParallel, buffers_are_not_broadcast_on_request) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({1}, 1);
    const at::Tensor buffer = at::zeros({1}, at::kFloat);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                                         {.buffer_sync = BufferSync::none}));
    buffer.fill_(mine(group));
    STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return weight.sum(); }));
    STOKER_RETURN_IF_ERROR(parallel->backward(loss));
    STOKER_RETURN_IF_ERROR(expect_all(buffer, mine(group)));
    STOKER_RETURN_IF_ERROR(parallel->sync_buffers());
    return expect_all(buffer, 1);
  }));
}

TEST(DataParallel, gradients_accumulate_until_the_next_sync) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({4}, 1);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {}, {}));
    for (int step = 0; step < 3; ++step) {
      parallel->zero_grad();
      const auto backward = [&]() -> Status {
        STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
        return parallel->backward(loss);
      };
      {
        const DataParallel::NoSync no_sync(*parallel);
        STOKER_RETURN_IF_ERROR(backward());
        STOKER_RETURN_IF_ERROR(expect_all(weight.grad(), mine(group)));
      }
      STOKER_RETURN_IF_ERROR(backward());
      STOKER_RETURN_IF_ERROR(expect_all(weight.grad(), 3));
    }
    return {};
  }));
}

TEST(DataParallel, finds_parameters_that_a_rank_did_not_use) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {},
                                                         {.unused_parameters = UnusedParameters::find}));
    for (int step = 0; step < 4; ++step) {
      parallel->zero_grad();
      // Rank 0 uses b in even iterations, rank 1 in odd ones.
      const bool uses_b = (step + group.rank().value) % 2 == 0;
      STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return uses_b ? (a * b).sum() : a.sum(); }));
      STOKER_RETURN_IF_ERROR(parallel->backward(loss));
      STOKER_RETURN_IF_ERROR(expect_all(a.grad(), 1));
      STOKER_RETURN_IF_ERROR(expect_all(b.grad(), 0.5));
    }
    return {};
  }));
}

TEST(DataParallel, names_an_unused_parameter_and_the_ranks) {
  for (const Transport transport : {Transport::automatic, Transport::gloo}) {
    const auto statuses = on_ranks(
        3,
        [](ProcessGroup& group) -> Status {
          const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
          STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {}));
          const bool uses_b = group.rank().value != 1;
          STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return uses_b ? (a * b).sum() : a.sum(); }));
          return parallel->backward(loss);
        },
        transport);
    EXPECT_EQ(statuses[1].code(), Code::invalid);
    EXPECT_EQ(statuses[1].message(),
              "rank 1: averaging gradients: no gradient for 'b' on rank 1 (of 3 ranks): every parameter must "
              "be used in every step unless find_unused_parameters is on");
    EXPECT_EQ(statuses[1].cure(), "train: {find_unused_parameters: true} (in C++: UnusedParameters::find)");
    if (transport == Transport::gloo) continue;  // peers cannot read it after rank 1 has left
    EXPECT_THAT(std::string(statuses[0].message()),
                HasSubstr("rank 0: averaging gradients: no gradient for 'b' on rank 1"));
    EXPECT_THAT(std::string(statuses[2].message()),
                HasSubstr("rank 2: averaging gradients: no gradient for 'b' on rank 1"));
  }
}

TEST(DataParallel, names_all_ranks_that_miss_a_gradient) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {}));
    STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return a.sum(); }));
    return parallel->backward(loss);
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("no gradient for 'b' on ranks 0, 1 (of 2 ranks)"));
  }
}

TEST(DataParallel, a_static_graph_allows_unused_parameters) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    STOKER_ASSIGN_OR_RETURN(
        parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {.graph = Graph::static_graph}));
    for (int step = 0; step < 4; ++step) {
      parallel->zero_grad();
      STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (a * mine(group)).sum(); }));
      STOKER_RETURN_IF_ERROR(parallel->backward(loss));
      STOKER_RETURN_IF_ERROR(expect_all(a.grad(), 1.5));
    }
    return {};
  }));
}

TEST(DataParallel, compressed_gradients_are_rounded) {
  for (const Compression compression : {Compression::float16, Compression::bfloat16}) {
    // 1 + 2^-9 is exact in float16, but not in bfloat16; its half is exact in both.
    const float expected = compression == Compression::float16 ? 1 + 1.0F / 512 : 1.0F;
    expect_ok(on_ranks(2, [=](ProcessGroup& group) -> Status {
      const at::Tensor weight = parameter({4}, 1);
      STOKER_ASSIGN_OR_RETURN(
          parallel, DataParallel::wrap(group, {{"weight", weight}}, {}, {.compression = compression}));
      for (int step = 0; step < 3; ++step) {
        parallel->zero_grad();
        STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (weight * (1 + 1.0F / 512)).sum(); }));
        STOKER_RETURN_IF_ERROR(parallel->backward(loss));
        STOKER_RETURN_IF_ERROR(expect_all(weight.grad(), expected));
      }
      return {};
    }));
  }
}

TEST(DataParallel, buckets_have_the_requested_size) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({4}, 1), b = parameter({4}, 1), c = parameter({4}, 1);
    STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}, {"c", c}}, {},
                                                         {.bucket = {32}, .first_bucket = {16}}));
    for (int step = 0; step < 3; ++step) {
      parallel->zero_grad();
      STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (a * b * c).sum(); }));
      STOKER_RETURN_IF_ERROR(parallel->backward(loss));
    }
    return parallel->bucket_bytes() == std::vector<std::int64_t>{16, 32} ? Status()
                                                                         : internal("other buckets");
  }));
}

// Ranks have 3, 1 and 2 batches. A rank without batches adds zeros, and all ranks end with the same model.
TEST(DataParallel, ranks_with_fewer_batches_join) {
  for (const UnusedParameters unused : {UnusedParameters::never, UnusedParameters::find}) {
    std::vector<float> ends(3);
    expect_ok(on_ranks(3, [&](ProcessGroup& group) -> Status {
      const int rank = group.rank().value;
      const at::Tensor weight = parameter({4}, 1);
      const at::Tensor buffer = at::zeros({1}, at::kFloat);
      STOKER_ASSIGN_OR_RETURN(parallel,
                              DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                                 {.unused_parameters = unused, .inputs = Inputs::uneven}));
      for (int epoch = 0; epoch < 2; ++epoch) {
        const int batches[] = {3, 1, 2};
        for (int step = 0; step < batches[rank]; ++step) {
          parallel->zero_grad();
          STOKER_ASSIGN_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
          STOKER_RETURN_IF_ERROR(parallel->backward(loss));
          const float sums[] = {6, 4, 1};  // 1 + 2 + 3, then without rank 1, then rank 0 alone
          STOKER_RETURN_IF_ERROR(expect_all(weight.grad(), sums[step] / 3));
          weight.detach().sub_(weight.grad());
        }
        STOKER_RETURN_IF_ERROR(parallel->join());
      }
      ends[static_cast<std::size_t>(rank)] = weight.min().item<float>();
      return {};
    }));
    EXPECT_EQ(ends[1], ends[0]);
    EXPECT_EQ(ends[2], ends[0]);
    EXPECT_NEAR(ends[0], 1 - 2 * 11.0 / 3, 1e-5);
  }
}

TEST(DataParallel, joining_needs_the_option_and_sync) {
  auto group = ProcessGroup::connect({});
  auto even = DataParallel::wrap(**group, {{"weight", parameter({4}, 1)}}, {}, {});
  EXPECT_EQ((*even)->join().message(),
            "rank 0: join() requires DataParallelOptions with inputs = Inputs::uneven");
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({4}, 1);
    STOKER_ASSIGN_OR_RETURN(parallel,
                            DataParallel::wrap(group, {{"weight", weight}}, {}, {.inputs = Inputs::uneven}));
    const DataParallel::NoSync no_sync(*parallel);
    return parallel->forward([&] { return weight.sum(); }).status();
  });
  EXPECT_EQ(statuses[1].message(), "rank 1: steps without sync cannot be combined with uneven inputs");
}

TEST(DataParallel, rejects_different_models_on_all_ranks) {
  const auto statuses = on_ranks(3, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({group.rank().value == 1 ? 3 : 2, 5}, 1);
    return DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {}).status();
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(statuses[static_cast<std::size_t>(rank)].code(), Code::invalid);
    EXPECT_EQ(
        statuses[static_cast<std::size_t>(rank)].message(),
        format(
            "rank {}: comparing the model between ranks: parameter 2 is 'b' of Float [2, 5] on rank 0, but "
            "'b' of Float [3, 5] on rank 1",
            rank));
  }
}

TEST(DataParallel, names_a_parameter_that_only_one_rank_has) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    NamedTensors parameters{{"a", parameter({2}, 1)}};
    if (group.rank().value == 1) parameters.push_back({"b", parameter({2}, 1)});
    return DataParallel::wrap(group, parameters, {}, {}).status();
  });
  EXPECT_EQ(
      statuses[0].message(),
      "rank 0: comparing the model between ranks: parameter 2 is 'b' of Float [2] on rank 1, but missing "
      "on rank 0");
}

TEST(DataParallel, with_one_rank_is_the_plain_model) {
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
}  // namespace stoker::train
