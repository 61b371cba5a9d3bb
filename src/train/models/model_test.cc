#include "stoker/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

namespace stoker::train {
namespace {

std::unique_ptr<Model> small(std::uint64_t seed = 1) {
  auto model = make_model({"cifar-resnet20", 10, seed});
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

std::int64_t parameter_count(const Model& model) {
  std::int64_t count = 0;
  for (const NamedTensor& item : model.state().parameters) count += item.tensor.numel();
  return count;
}

TEST(Model, has_the_parameter_counts_of_the_papers) {
  EXPECT_EQ(parameter_count(*small()), 269'722);
  EXPECT_EQ(parameter_count(**make_model({"resnet18", 1000, 1})), 11'689'512);
  EXPECT_EQ(parameter_count(**make_model({"resnet34", 1000, 1})), 21'797'672);
  EXPECT_EQ(parameter_count(**make_model({"resnet50", 1000, 1})), 25'557'032);
  EXPECT_EQ(parameter_count(**make_model({"resnet101", 1000, 1})), 44'549'160);
  EXPECT_EQ(parameter_count(**make_model({"resnet152", 1000, 1})), 60'192'808);
  EXPECT_EQ(parameter_count(**make_model({"vit-s16", 1000, 1})), 22'050'664);
}

TEST(Model, an_unknown_name_is_rejected_with_a_suggestion) {
  EXPECT_EQ(make_model({"resnet19", 10, 1}).status().to_string(),
            "model 'resnet19': no such model; did you mean 'resnet18'?");
}

TEST(Model, the_same_seed_gives_the_same_weights) {
  const auto a = small(1), b = small(1), c = small(2);
  EXPECT_TRUE(at::equal(a->state().all[0].tensor, b->state().all[0].tensor));
  EXPECT_FALSE(at::equal(a->state().all[0].tensor, c->state().all[0].tensor));
}

TEST(Model, evaluation_does_not_change_statistics) {
  const auto model = small();
  const at::Tensor images = at::ones({2, 3, 32, 32});
  model->set_mode(Mode::evaluate);
  EXPECT_EQ(model->forward(images).sizes(), at::IntArrayRef({2, 10}));
  EXPECT_EQ(model->state().buffers[2].tensor.item<std::int64_t>(), 0);
  model->set_mode(Mode::train);
  (void)model->forward(images);
  EXPECT_EQ(model->state().buffers[2].tensor.item<std::int64_t>(), 1);
}

TEST(Model, loads_the_state_of_a_second_model) {
  const auto a = small(1), b = small(2);
  ASSERT_TRUE(b->load(a->state().all).ok());
  EXPECT_TRUE(at::equal(a->state().all.back().tensor, b->state().all.back().tensor));
}

TEST(Model, rejects_a_mismatched_state_and_keeps_its_values) {
  const auto a = small(1), b = small(2);
  const at::Tensor before = b->state().all[0].tensor.clone();
  NamedTensors state = a->state().all;
  state.back().tensor = at::zeros({11});
  EXPECT_EQ(b->load(state).message(), "model state: 'fc.bias' is 11 Float (the model's is 10 Float)");
  state.back() = {"fc.extra", at::zeros({10})};
  EXPECT_EQ(b->load(state).message(), "model state: 'fc.bias' is missing");
  state = a->state().all;
  state.push_back({"fc.extra", at::zeros({10})});
  EXPECT_EQ(b->load(state).message(), "model state: 'fc.extra' is not part of the model");
  EXPECT_TRUE(at::equal(before, b->state().all[0].tensor));
}

at::Tensor noise(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::TensorOptions());
}

TEST(Model, with_several_heads_trains_the_drawn_one_and_evaluates_the_mean) {
  const auto model = *make_model({.name = "cifar-resnet20", .classes = 5, .seed = 1, .heads = 2});
  EXPECT_TRUE(model->may_skip_parameters());
  EXPECT_EQ(model->state().all.back().name, "fc.1.bias");
  const at::Tensor images = noise({2, 3, 32, 32}, 1);
  model->reseed({.shared = 3});
  model->forward(images).sum().backward();
  for (const NamedTensor& item : model->state().parameters)
    EXPECT_EQ(item.tensor.grad().defined(), !item.name.starts_with("fc.0.")) << item.name;

  model->set_mode(Mode::evaluate);
  const at::Tensor mean = model->forward(images);
  for (const NamedTensor& item : model->state().all) {
    const at::NoGradGuard no_grad;
    if (item.name == "fc.0.bias") item.tensor.add_(1);
  }
  EXPECT_NEAR(model->forward(images).sub(mean).mean().item<double>(), 0.5, 1e-5);
}

TEST(Model, dropped_blocks_affect_training_only) {
  const auto plain = *make_model({.name = "cifar-resnet20", .seed = 1});
  const auto dropping = *make_model({.name = "cifar-resnet20", .seed = 1, .drop = 0.5});
  EXPECT_FALSE(dropping->may_skip_parameters());
  const at::Tensor images = noise({4, 3, 32, 32}, 2);
  const auto pass = [&](std::uint64_t own) {
    dropping->reseed({.own = own});
    return dropping->forward(images);
  };
  const at::Tensor first = pass(1), again = pass(1), other = pass(2);
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_FALSE(at::equal(first, other));
  first.sum().backward();
  for (const NamedTensor& item : dropping->state().parameters)
    EXPECT_TRUE(item.tensor.grad().defined()) << item.name;
  ASSERT_TRUE(plain->load(dropping->state().all).ok());
  plain->set_mode(Mode::evaluate);
  dropping->set_mode(Mode::evaluate);
  EXPECT_TRUE(at::equal(plain->forward(images), dropping->forward(images)));
}

TEST(Model, always_dropped_blocks_keep_their_shortcuts) {
  const auto model = *make_model({.name = "cifar-resnet20", .seed = 1, .drop = 1});
  model->reseed({.own = 1});
  model->forward(noise({2, 3, 32, 32}, 3)).sum().backward();
  for (const NamedTensor& item : model->state().parameters) {
    if (item.name == "layer3.2.conv2.weight") {
      EXPECT_EQ(item.tensor.grad().abs().sum().item<double>(), 0);
    }
  }
}

TEST(Model, gpt_attention_is_causal) {
  const auto model = *make_model(
      {.name = "gpt", .classes = 11, .seed = 1, .gpt = {.layers = 2, .heads = 2, .width = 8, .length = 6}});
  EXPECT_EQ(model->input(), Input::tokens);
  const at::Tensor tokens = at::ones({1, 6}, at::kLong);
  const at::Tensor before = model->forward(tokens);
  EXPECT_EQ(before.sizes(), at::IntArrayRef({1, 6, 11}));
  tokens.select(1, 4).fill_(2);
  const at::Tensor after = model->forward(tokens);
  EXPECT_TRUE(at::allclose(before.slice(1, 0, 4), after.slice(1, 0, 4)));
  EXPECT_FALSE(at::allclose(before.slice(1, 4), after.slice(1, 4)));
}

TEST(Model, an_invalid_shape_is_rejected) {
  EXPECT_EQ(make_model({.name = "vit-s16", .image_size = 100}).status().message(),
            "model 'vit-s16': an image size of 100 pixels is not a multiple of the patch size 16");
  EXPECT_EQ(make_model({.name = "gpt", .gpt = {.heads = 5, .width = 64}}).status().message(),
            "model 'gpt': a width of 64 is not divisible by 5 heads");
}

TEST(Model, reports_the_size_of_its_last_stage) {
  EXPECT_EQ(small()->last_stage_size(32), 8);
  EXPECT_EQ((*make_model({"resnet18", 10, 1}))->last_stage_size(224), 7);
  EXPECT_EQ((*make_model({"resnet18", 10, 1}))->last_stage_size(32), 1);
}

}  // namespace
}  // namespace stoker::train
