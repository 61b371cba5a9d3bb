#include "torch/models/model.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace stoker::torch {
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

TEST(Model, has_as_many_parameters_as_the_papers_say) {
  EXPECT_EQ(parameter_count(*small()), 269'722);
  EXPECT_EQ(parameter_count(**make_model({"resnet18", 1000, 1})), 11'689'512);
  EXPECT_EQ(parameter_count(**make_model({"resnet50", 1000, 1})), 25'557'032);
}

TEST(Model, of_an_unknown_name_is_refused_with_a_suggestion) {
  EXPECT_EQ(make_model({"resnet19", 10, 1}).status().to_string(),
            "model 'resnet19': no such model; did you mean 'resnet18'?");
}

TEST(Model, the_same_seed_gives_the_same_weights) {
  const auto a = small(1), b = small(1), c = small(2);
  EXPECT_TRUE(at::equal(a->state().all[0].tensor, b->state().all[0].tensor));
  EXPECT_FALSE(at::equal(a->state().all[0].tensor, c->state().all[0].tensor));
}

TEST(Model, evaluation_changes_no_statistics) {
  const auto model = small();
  const at::Tensor images = at::ones({2, 3, 32, 32});
  model->set_mode(Mode::evaluate);
  EXPECT_EQ(model->forward(images).sizes(), at::IntArrayRef({2, 10}));
  EXPECT_EQ(model->state().buffers[2].tensor.item<std::int64_t>(), 0);
  model->set_mode(Mode::train);
  (void)model->forward(images);
  EXPECT_EQ(model->state().buffers[2].tensor.item<std::int64_t>(), 1);
}

TEST(Model, loads_another_ones_state) {
  const auto a = small(1), b = small(2);
  ASSERT_TRUE(b->load(a->state().all).ok());
  EXPECT_TRUE(at::equal(a->state().all.back().tensor, b->state().all.back().tensor));
}

TEST(Model, refuses_a_state_that_is_not_its_own_and_keeps_its_values) {
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

TEST(Model, knows_what_its_last_stage_sees) {
  EXPECT_EQ(small()->last_stage_size(32), 8);
  EXPECT_EQ((*make_model({"resnet18", 10, 1}))->last_stage_size(224), 7);
  EXPECT_EQ((*make_model({"resnet18", 10, 1}))->last_stage_size(32), 1);
}

}  // namespace
}  // namespace stoker::torch
