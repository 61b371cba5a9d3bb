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

TEST(DataParallel, names_the_parameter_that_took_no_part_and_the_ranks) {
  for (const Transport transport : {Transport::automatic, Transport::gloo}) {
    const auto statuses = on_ranks(
        3,
        [](ProcessGroup& group) -> Status {
          const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
          OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {}));
          const bool uses_b = group.rank().value != 1;
          OK_OR_RETURN(loss, parallel->forward([&] { return uses_b ? (a * b).sum() : a.sum(); }));
          return parallel->backward(loss);
        },
        transport);
    EXPECT_EQ(statuses[1].code(), Code::invalid);
    EXPECT_EQ(
        statuses[1].message(),
        "rank 1: averaging gradients: no gradient for 'b' on rank 1 (of 3 ranks): each parameter must take "
        "part in every step, or unused ones be searched for");
    if (transport == Transport::gloo) continue;  // whose other ranks learn it when rank 1 has left
    EXPECT_THAT(std::string(statuses[0].message()),
                HasSubstr("rank 0: averaging gradients: no gradient for 'b' on rank 1"));
    EXPECT_THAT(std::string(statuses[2].message()),
                HasSubstr("rank 2: averaging gradients: no gradient for 'b' on rank 1"));
  }
}

TEST(DataParallel, names_all_ranks_that_miss_a_gradient) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {}));
    OK_OR_RETURN(loss, parallel->forward([&] { return a.sum(); }));
    return parallel->backward(loss);
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("no gradient for 'b' on ranks 0, 1 (of 2 ranks)"));
  }
}

TEST(DataParallel, with_a_fixed_graph_a_parameter_may_take_no_part_from_the_first_step_on) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({2}, 1), b = parameter({2}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}}, {}, {.graph = Graph::fixed}));
    for (int step = 0; step < 4; ++step) {
      parallel->zero_grad();
      OK_OR_RETURN(loss, parallel->forward([&] { return (a * mine(group)).sum(); }));
      RETURN_IF_ERROR(parallel->backward(loss));
      RETURN_IF_ERROR(expect_all(a.grad(), 1.5));
    }
    return {};
  }));
}

TEST(DataParallel, compressed_gradients_are_rounded_on_the_way) {
  for (const Compression compression : {Compression::float16, Compression::bfloat16}) {
    // 1 + 2^-9 has the bits for float16, but not for bfloat16; its half is exact in both.
    const float expected = compression == Compression::float16 ? 1 + 1.0F / 512 : 1.0F;
    expect_ok(on_ranks(2, [=](ProcessGroup& group) -> Status {
      const at::Tensor weight = parameter({4}, 1);
      OK_OR_RETURN(parallel,
                   DataParallel::wrap(group, {{"weight", weight}}, {}, {.compression = compression}));
      for (int step = 0; step < 3; ++step) {
        parallel->zero_grad();
        OK_OR_RETURN(loss, parallel->forward([&] { return (weight * (1 + 1.0F / 512)).sum(); }));
        RETURN_IF_ERROR(parallel->backward(loss));
        RETURN_IF_ERROR(expect_all(weight.grad(), expected));
      }
      return {};
    }));
  }
}

TEST(DataParallel, buckets_have_the_size_that_was_asked_for) {
  expect_ok(on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor a = parameter({4}, 1), b = parameter({4}, 1), c = parameter({4}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"a", a}, {"b", b}, {"c", c}}, {},
                                              {.bucket = {32}, .first_bucket = {16}}));
    for (int step = 0; step < 3; ++step) {
      parallel->zero_grad();
      OK_OR_RETURN(loss, parallel->forward([&] { return (a * b * c).sum(); }));
      RETURN_IF_ERROR(parallel->backward(loss));
    }
    return parallel->bucket_bytes() == std::vector<std::int64_t>{16, 32} ? Status()
                                                                         : internal("other buckets");
  }));
}

// Ranks have 3, 1 and 2 batches. Every rank that is out of them adds nothing, and all end with the same
// model.
TEST(DataParallel, ranks_with_fewer_batches_accompany_the_others) {
  for (const Unused unused : {Unused::never, Unused::search}) {
    std::vector<float> ends(3);
    expect_ok(on_ranks(3, [&](ProcessGroup& group) -> Status {
      const int rank = group.rank().value;
      const at::Tensor weight = parameter({4}, 1);
      const at::Tensor buffer = at::zeros({1}, at::kFloat);
      OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {{"mean", buffer}},
                                                {.unused = unused, .inputs = Inputs::uneven}));
      for (int epoch = 0; epoch < 2; ++epoch) {
        const int batches[] = {3, 1, 2};
        for (int step = 0; step < batches[rank]; ++step) {
          parallel->zero_grad();
          OK_OR_RETURN(loss, parallel->forward([&] { return (weight * mine(group)).sum(); }));
          RETURN_IF_ERROR(parallel->backward(loss));
          const float sums[] = {6, 4, 1};  // 1 + 2 + 3, then without rank 1, then rank 0 alone
          RETURN_IF_ERROR(expect_all(weight.grad(), sums[step] / 3));
          weight.detach().sub_(weight.grad());
        }
        RETURN_IF_ERROR(parallel->join());
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
            "rank 0: joining is for DataParallelOptions with inputs = Inputs::uneven");
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    const at::Tensor weight = parameter({4}, 1);
    OK_OR_RETURN(parallel, DataParallel::wrap(group, {{"weight", weight}}, {}, {.inputs = Inputs::uneven}));
    const DataParallel::NoSync no_sync(*parallel);
    return parallel->forward([&] { return weight.sum(); }).status();
  });
  EXPECT_EQ(statuses[1].message(), "rank 1: steps without sync and uneven inputs do not go together");
}

TEST(DataParallel, refuses_models_that_differ_on_every_rank_alike) {
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

TEST(DataParallel, names_what_one_rank_has_more) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    NamedTensors parameters{{"a", parameter({2}, 1)}};
    if (group.rank().value == 1) parameters.push_back({"b", parameter({2}, 1)});
    return DataParallel::wrap(group, parameters, {}, {}).status();
  });
  EXPECT_EQ(
      statuses[0].message(),
      "rank 0: comparing the model between ranks: parameter 2 is 'b' of Float [2] on rank 1, but rank 0 has "
      "none such");
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
