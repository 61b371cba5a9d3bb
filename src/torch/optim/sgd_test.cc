#include "torch/optim/sgd.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "torch/test_golden.h"

namespace stoker::torch {
namespace {

std::vector<float> flat(const nlohmann::json& values) {
  std::vector<float> numbers;
  for (const auto& value : values) {
    const std::vector<float> inner = value.is_array() ? flat(value) : std::vector<float>{value.get<float>()};
    numbers.insert(numbers.end(), inner.begin(), inner.end());
  }
  return numbers;
}

at::Tensor tensor_of(const nlohmann::json& values) {
  std::vector<float> numbers = flat(values);
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(values.size())};
  if (values[0].is_array()) shape.push_back(static_cast<std::int64_t>(values[0].size()));
  return at::from_blob(numbers.data(), shape, at::kFloat).clone();
}

// tests/golden/optimizers.json: 20 steps of torch.optim.SGD on a small problem. The same operations in the
// same order must give the same float32 values, to the last bit.
void expect_golden(const SgdOptions& options, double momentum, std::string_view name) {
  const nlohmann::json reference = golden("optimizers.json");
  const nlohmann::json row = golden_row(reference, name);
  const at::Tensor a = tensor_of(reference.at("A")), b = tensor_of(reference.at("b"));
  const at::Tensor w = tensor_of(reference.at("w0")).set_requires_grad(true);
  const at::Tensor m = tensor_of(reference.at("m0")).set_requires_grad(true);
  Sgd sgd({{"w", w}, {"m", m}}, options);
  for (int i = 0; i < 20; ++i) {
    w.mutable_grad().reset();
    m.mutable_grad().reset();
    const at::Tensor loss =
        at::matmul(a, w).sub(b).pow(2).mean() + m.pow(2).sum() * 0.5 + m.sum() * (0.1 * (i % 3));
    loss.backward();
    sgd.step({.lr = 0.05, .momentum = momentum});
    const std::string step = std::to_string(i + 1);
    if (!row.at("steps").contains(step)) continue;
    const std::vector<float> expected = flat(row.at("steps").at(step));
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(w[k].item<float>(), expected[static_cast<std::size_t>(k)])
          << name << " step " << step << " w" << k;
    }
    EXPECT_EQ((m[0][0].item<float>()), expected[5]) << name << " step " << step;
    EXPECT_EQ((m[2][3].item<float>()), expected[6]) << name << " step " << step;
  }
}

TEST(Sgd, plain_is_pytorchs) { expect_golden({}, 0, "SGD(lr=0.05)"); }
TEST(Sgd, with_momentum_is_pytorchs) { expect_golden({}, 0.9, "SGD(lr=0.05,momentum=0.9)"); }
TEST(Sgd, with_dampening_and_weight_decay_is_pytorchs) {
  expect_golden({.weight_decay = 0.01, .dampening = 0.1}, 0.9,
                "SGD(lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01)");
}
TEST(Sgd, nesterov_is_pytorchs) {
  expect_golden({.kind = Momentum::nesterov, .weight_decay = 5e-4}, 0.9,
                "SGD(lr=0.05,momentum=0.9,weight_decay=5e-4,nesterov)");
}

TEST(Sgd, state_is_named_as_pytorch_flattens_it_and_absent_without_momentum) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  Sgd sgd({{"layer.weight", w}}, {});
  w.mutable_grad() = tensor_of({1.0F, 1.0F});
  sgd.step({.lr = 0.1, .momentum = 0});
  EXPECT_TRUE(sgd.state().empty());
  sgd.step({.lr = 0.1, .momentum = 0.9});
  ASSERT_EQ(sgd.state().size(), 1u);
  EXPECT_EQ(sgd.state()[0].name, "state.layer.weight.momentum_buffer");
}

}  // namespace
}  // namespace stoker::torch
