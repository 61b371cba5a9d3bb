#include "stoker/optimizer.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "stoker/adaptive.h"
#include "stoker/ema.h"
#include "stoker/gradients.h"
#include "stoker/sgd.h"
#include "train/test_golden.h"

namespace stoker::train {
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

// tests/golden/optimizers.json: 20 steps on a small problem. The same operations in the same order must give
// the same float32 bits.
template <typename Make>
void expect_golden(Make make, const Rates& rates, std::string_view name) {
  const nlohmann::json reference = golden("optimizers.json");
  const nlohmann::json row = golden_row(reference, name);
  const at::Tensor a = tensor_of(reference.at("A")), b = tensor_of(reference.at("b"));
  const at::Tensor w = tensor_of(reference.at("w0")).set_requires_grad(true);
  const at::Tensor m = tensor_of(reference.at("m0")).set_requires_grad(true);
  auto optimizer = make(NamedTensors{{"w", w}, {"m", m}});
  int compared = 0;
  for (int i = 0; i < 20; ++i) {
    w.mutable_grad().reset();
    m.mutable_grad().reset();
    const at::Tensor loss =
        at::matmul(a, w).sub(b).pow(2).mean() + m.pow(2).sum() * 0.5 + m.sum() * (0.1 * (i % 3));
    loss.backward();
    optimizer.step(rates);
    const std::string step = std::to_string(i + 1);
    if (!row.at("steps").contains(step)) continue;
    const std::vector<float> expected = flat(row.at("steps").at(step));
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(w[k].item<float>(), expected[static_cast<std::size_t>(k)])
          << name << " step " << step << " w" << k;
    }
    EXPECT_EQ((m[0][0].item<float>()), expected[5]) << name << " step " << step;
    EXPECT_EQ((m[2][3].item<float>()), expected[6]) << name << " step " << step;
    ++compared;
  }
  EXPECT_EQ(compared, 7);
}

void expect_golden(const SgdOptions& options, double momentum, std::string_view name) {
  expect_golden([&](NamedTensors parameters) { return Sgd(std::move(parameters), options); },
                {.lr = 0.05, .momentum = momentum}, name);
}

TEST(Sgd, plain_matches_pytorch) { expect_golden({}, 0, "SGD(lr=0.05)"); }
TEST(Sgd, with_momentum_matches_pytorch) { expect_golden({}, 0.9, "SGD(lr=0.05,momentum=0.9)"); }
TEST(Sgd, with_dampening_and_weight_decay_matches_pytorch) {
  expect_golden({.weight_decay = 0.01, .dampening = 0.1}, 0.9,
                "SGD(lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01)");
}
TEST(Sgd, nesterov_matches_pytorch) {
  expect_golden({.kind = Momentum::nesterov, .weight_decay = 5e-4}, 0.9,
                "SGD(lr=0.05,momentum=0.9,weight_decay=5e-4,nesterov)");
}

TEST(Sgd, state_has_pytorchs_flat_names_and_is_absent_without_momentum) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  Sgd sgd({{"layer.weight", w}}, {});
  w.mutable_grad() = tensor_of({1.0F, 1.0F});
  sgd.step({.lr = 0.1, .momentum = 0});
  EXPECT_TRUE(sgd.state().empty());
  sgd.step({.lr = 0.1, .momentum = 0.9});
  ASSERT_EQ(sgd.state().size(), 1u);
  EXPECT_EQ(sgd.state()[0].name, "state.layer.weight.momentum_buffer");
}

TEST(AdamW, matches_pytorch) {
  expect_golden([](const NamedTensors& p) { return AdamW(p, {.weight_decay = 0.01}); },
                {.lr = 0.01, .momentum = 0.9}, "AdamW(lr=0.01,betas=(0.9,0.999),eps=1e-8,weight_decay=0.01)");
  expect_golden([](const NamedTensors& p) { return AdamW(p, {.beta2 = 0.95, .weight_decay = 0.1}); },
                {.lr = 0.01, .momentum = 0.9}, "AdamW(lr=0.01,betas=(0.9,0.95),weight_decay=0.1)");
}

TEST(Lamb, matches_its_definition_in_python) {
  expect_golden([](const NamedTensors& p) { return Lamb(p, {.epsilon = 1e-6, .weight_decay = 0.01}); },
                {.lr = 0.02, .momentum = 0.9},
                "LAMB(lr=0.02,betas=(0.9,0.999),eps=1e-6,wd=0.01) [own definition]");
}

TEST(Lars, matches_its_definition_in_python) {
  expect_golden(
      [](const NamedTensors& p) { return Lars(p, {.trust_coefficient = 0.02, .weight_decay = 1e-4}); },
      {.lr = 1, .momentum = 0.9}, "LARS(lr=1.0,momentum=0.9,wd=1e-4,trust=0.02) [own definition]");
}

// With a zero gradient, a step of `Any` leaves an excluded vector unchanged and decays a matrix.
template <typename Any, typename Options>
void expect_spared(const Options& options) {
  const at::Tensor vector = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  const at::Tensor matrix = tensor_of({{1.0F, 2.0F}, {3.0F, 4.0F}}).set_requires_grad(true);
  vector.mutable_grad() = tensor_of({0.0F, 0.0F});
  matrix.mutable_grad() = tensor_of({{0.0F, 0.0F}, {0.0F, 1e-6F}});
  Any optimizer({{"bias", vector}, {"weight", matrix}}, options);
  optimizer.step({.lr = 0.5, .momentum = 0.9});
  EXPECT_EQ(vector[0].item<float>(), 1.0F);
  EXPECT_EQ(vector[1].item<float>(), 2.0F);
  EXPECT_LT((matrix[0][0].template item<float>()), 1.0F);
}

TEST(Optimizer, excludes_vectors_on_request) {
  expect_spared<Sgd>(SgdOptions{.weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
  expect_spared<AdamW>(AdaptiveOptions{.weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
  expect_spared<Lamb>(AdaptiveOptions{.weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
  expect_spared<Lars>(
      LarsOptions{.trust_coefficient = 0.02, .weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
}

// Twenty steps on a small problem with these kernels; `step` makes one.
template <typename Any, typename Options, typename Step>
std::vector<float> trained_with(Options options, OptimizerKernels kernels, const Step& step) {
  const at::Tensor matrix = tensor_of({{1.0F, 2.0F}, {3.0F, 4.0F}}).set_requires_grad(true);
  const at::Tensor vector = tensor_of({1.0F, -2.0F}).set_requires_grad(true);
  options.kernels = kernels;
  Any optimizer({{"matrix", matrix}, {"vector", vector}}, options);
  for (int i = 0; i < 20; ++i) {
    matrix.mutable_grad().reset();
    vector.mutable_grad().reset();
    const at::Tensor loss = at::matmul(matrix, vector).pow(2).mean() + vector.pow(2).sum();
    loss.backward();
    step(optimizer, Rates{.lr = 0.01, .momentum = 0.9 - 0.01 * (i % 3)});
  }
  std::vector<float> values;
  for (const at::Tensor& tensor : {matrix.flatten(), vector})
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor[i].item<float>());
  return values;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

template <typename Any, typename Options>
void expect_same_kernels(const Options& options) {
  const auto on_host = [](Optimizer& optimizer, const Rates& rates) { optimizer.step(rates); };
  const std::vector<float> expected = trained_with<Any>(options, OptimizerKernels::per_tensor, on_host);
  for (const OptimizerKernels kernels : {OptimizerKernels::foreach, OptimizerKernels::fused})
    expect_near(trained_with<Any>(options, kernels, on_host), expected);
}

TEST(Optimizer, all_kernels_compute_the_same_up_to_rounding) {
  expect_same_kernels<Sgd>(SgdOptions{.weight_decay = 0.1});
  expect_same_kernels<Sgd>(
      SgdOptions{.kind = Momentum::nesterov, .weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
  expect_same_kernels<AdamW>(AdaptiveOptions{.weight_decay = 0.1, .bias_and_norm = BiasAndNorm::excluded});
}

// The rates of a captured step are read on the device.
TEST(Optimizer, rates_on_the_device_give_the_same_steps) {
  const auto on_host = [](Optimizer& optimizer, const Rates& rates) { optimizer.step(rates); };
  const auto on_device = [](Optimizer& optimizer, const Rates& rates) {
    EXPECT_TRUE(optimizer.step(DeviceRates{.lr = at::full({}, rates.lr, at::kFloat),
                                           .momentum = at::full({}, rates.momentum, at::kFloat)}));
  };
  for (const Momentum kind : {Momentum::classic, Momentum::nesterov}) {
    const SgdOptions options{.kind = kind, .weight_decay = 0.1};
    expect_near(trained_with<Sgd>(options, OptimizerKernels::fused, on_device),
                trained_with<Sgd>(options, OptimizerKernels::per_tensor, on_host));
  }
}

TEST(Optimizer, rates_on_the_device_need_no_momentum) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  w.mutable_grad() = tensor_of({1.0F, 1.0F});
  for (const OptimizerKernels kernels : {OptimizerKernels::foreach, OptimizerKernels::fused}) {
    Sgd sgd({{"w", w}}, {.kernels = kernels});
    EXPECT_TRUE(sgd.step(DeviceRates{.lr = at::full({}, 0.25, at::kFloat)}));
    EXPECT_TRUE(sgd.state().empty());
  }
  EXPECT_EQ(w[0].item<float>(), 0.5F);
}

TEST(Optimizer, an_overflowed_step_on_the_device_changes_nothing) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  w.mutable_grad() = tensor_of({1.0F, 1.0F});
  Sgd sgd({{"w", w}}, {.kernels = OptimizerKernels::fused});
  AdamW adamw({{"w", w}}, {.kernels = OptimizerKernels::fused});
  const DeviceRates rates{.lr = at::full({}, 1.0, at::kFloat),
                          .momentum = {},
                          .fixed_momentum = 0.9,
                          .overflowed = at::full({1}, 1.0, at::kFloat)};
  EXPECT_TRUE(sgd.step(rates));
  EXPECT_TRUE(adamw.step(rates));
  EXPECT_EQ(w[0].item<float>(), 1.0F);
  EXPECT_EQ(sgd.state()[0].tensor[0].item<float>(), 0.0F);
  EXPECT_EQ(adamw.state()[0].tensor.item<float>(), 0.0F) << "counted steps";
}

TEST(Optimizer, what_cannot_read_its_rates_on_the_device_refuses_and_changes_nothing) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  w.mutable_grad() = tensor_of({1.0F, 1.0F});
  const at::Tensor one = at::full({}, 1.0, at::kFloat);
  EXPECT_FALSE(Sgd({{"w", w}}, {}).step(DeviceRates{.lr = one}));
  EXPECT_FALSE(Lamb({{"w", w}}, {}).step(DeviceRates{.lr = one}));
  EXPECT_FALSE(Lars({{"w", w}}, {}).step(DeviceRates{.lr = one}));
  EXPECT_FALSE(
      AdamW({{"w", w}}, {.kernels = OptimizerKernels::fused}).step(DeviceRates{.lr = one, .momentum = one}));
  EXPECT_EQ(w[0].item<float>(), 1.0F);
}

TEST(Optimizer, adaptive_state_has_pytorchs_flat_names) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  const AdamW adamw({{"fc.bias", w}}, {});
  ASSERT_EQ(adamw.state().size(), 3u);
  EXPECT_EQ(adamw.state()[0].name, "state.fc.bias.step");
  EXPECT_EQ(adamw.state()[0].tensor.dim(), 0);
  EXPECT_EQ(adamw.state()[1].name, "state.fc.bias.exp_avg");
  EXPECT_EQ(adamw.state()[2].name, "state.fc.bias.exp_avg_sq");
  const Lars lars({{"fc.bias", w}}, {});
  ASSERT_EQ(lars.state().size(), 1u);
  EXPECT_EQ(lars.state()[0].name, "state.fc.bias.momentum_buffer");
}

TEST(Clip, matches_pytorch) {
  const nlohmann::json reference = golden("optimizers.json");
  int compared = 0;
  for (const auto& row : reference.at("clip_grad_norm").at("rows")) {
    if (row.at("norm_type") != "2.0") continue;
    const at::Tensor p = tensor_of(reference.at("w0")).set_requires_grad(true);
    const at::Tensor q = tensor_of(reference.at("m0")).set_requires_grad(true);
    const at::Tensor unused = tensor_of({1.0F}).set_requires_grad(true);
    p.mutable_grad() = tensor_of(reference.at("w0"));
    q.mutable_grad() = tensor_of(reference.at("m0"));
    const double norm =
        clip_grad_norm({{"p", p}, {"unused", unused}, {"q", q}}, row.at("max_norm")).item<double>();
    EXPECT_EQ(static_cast<float>(norm), row.at("total_norm").get<float>());
    const std::vector<float> expected = flat(row.at("p_grad"));
    for (int k = 0; k < 5; ++k)
      EXPECT_EQ(p.grad()[k].item<float>(), expected[static_cast<std::size_t>(k)]) << k;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

// One training step with `gradient` before scaling. Returns the new scale.
double scaled_step(GradScaler& scaler, const at::Tensor& w, float gradient, bool* is_finite) {
  w.mutable_grad() = tensor_of({gradient * static_cast<float>(scaler.scale()), 0.0F});
  scaler.unscale({{"w", w}});
  *is_finite = scaler.overflowed().item<float>() == 0;
  scaler.update();
  return scaler.scale();
}

TEST(GradScaler, unscales_gradients_exactly) {
  GradScaler scaler;
  EXPECT_EQ(scaler.scaled(tensor_of({0.25F}).squeeze()).item<float>(), 16384.0F);
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  bool is_finite = false;
  EXPECT_EQ(scaled_step(scaler, w, 3e-5F, &is_finite), 65536);
  EXPECT_TRUE(is_finite);
  EXPECT_EQ(w.grad()[0].item<float>(), 3e-5F);
}

TEST(GradScaler, halves_after_an_overflow_and_doubles_after_enough_good_steps) {
  GradScaler scaler(65536, /*growth_steps=*/3);
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  bool is_finite = true;
  EXPECT_EQ(scaled_step(scaler, w, std::numeric_limits<float>::infinity(), &is_finite), 32768);
  EXPECT_FALSE(is_finite);
  EXPECT_EQ(scaled_step(scaler, w, std::numeric_limits<float>::quiet_NaN(), &is_finite), 16384);
  EXPECT_FALSE(is_finite);
  EXPECT_EQ(scaled_step(scaler, w, 1, &is_finite), 16384);
  EXPECT_EQ(scaled_step(scaler, w, 1, &is_finite), 16384);
  EXPECT_EQ(scaled_step(scaler, w, 1, &is_finite), 32768);
  EXPECT_TRUE(is_finite);
  EXPECT_EQ(scaled_step(scaler, w, 1, &is_finite), 32768);  // counts from here
}

TEST(GradScaler, state_round_trips) {
  GradScaler scaler(65536, 2), other(1, 2);
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  bool is_finite = false;
  scaled_step(scaler, w, 1, &is_finite);
  ASSERT_EQ(scaler.state().size(), 2u);
  EXPECT_EQ(scaler.state()[0].name, "scaler.scale");
  EXPECT_EQ(scaler.state()[1].name, "scaler.good_steps");
  for (std::size_t i = 0; i < 2; ++i) other.state()[i].tensor.copy_(scaler.state()[i].tensor);
  EXPECT_EQ(scaled_step(other, w, 1, &is_finite), 131072);
}

TEST(Ema, starts_with_the_first_weights_and_averages_later_ones) {
  const at::Tensor w = tensor_of({1.0F, 2.0F}).set_requires_grad(true);
  Ema ema({{"w", w}}, 0.75);
  w.mutable_data_ptr<float>()[0] = 3;
  ema.update(1);
  w.mutable_data_ptr<float>()[0] = 7;
  ema.update(2);
  ASSERT_EQ(ema.state().size(), 1u);
  EXPECT_EQ(ema.state()[0].name, "ema.w");
  EXPECT_EQ(ema.state()[0].tensor[0].item<float>(), 4.0F);  // 3 + (7 - 3) / 4
  {
    const Ema::Scope ema_scope(ema);
    EXPECT_EQ(w[0].item<float>(), 4.0F);
  }
  EXPECT_EQ(w[0].item<float>(), 7.0F);
}

}  // namespace
}  // namespace stoker::train
