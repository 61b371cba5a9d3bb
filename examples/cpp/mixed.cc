// Trains in float16 with a loss scale, on GPUs if there are any: mixed DATASET EPOCHS
#include <cstdio>
#include <cstdlib>
#include <stoker/gradients.h>
#include <stoker/session.h>
#include <stoker/sgd.h>
#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

using namespace stoker::train;

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 5).stride(2)))};
  torch::nn::Linear linear{register_module("linear", torch::nn::Linear(16 * 14 * 14, 10))};
  at::Tensor forward(const at::Tensor& x) { return linear(at::relu(conv(x)).flatten(1)); }
};

// As `with torch.autocast(device, dtype=torch.float16)`: convolutions and matrix products use float16, the
// weights stay float32. For bfloat16 no loss scale is needed.
class Autocast {
 public:
  explicit Autocast(at::Device device) : device_(device.type()) {
    at::autocast::set_autocast_dtype(device_, at::kHalf);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const at::DeviceType device_;
};

// SGD behind a loss scale. Checkpoints contain both.
class ScaledSgd final : public Optimizer {
 public:
  ScaledSgd(const NamedTensors& parameters, at::Device device)
      : parameters_(parameters),
        scaler_(65536, GradScaler::kGrowthSteps, device),
        sgd_(parameters, {.kind = Momentum::nesterov}) {}

  at::Tensor scaled(const at::Tensor& loss) const { return scaler_.scaled(loss); }
  double scale() const { return scaler_.scale(); }

  using Optimizer::step;
  void step(const Rates& rates) override {
    scaler_.unscale(parameters_);
    clip_grad_norm(parameters_, 1);
    // All ranks skip the same steps, because their gradients are the same averages.
    if (scaler_.overflowed().item<float>() == 0) sgd_.step(rates);
    scaler_.update();
  }
  void make_state(const Rates& rates) override { sgd_.make_state(rates); }
  NamedTensors state() const override {
    NamedTensors state = sgd_.state();
    for (NamedTensor& each : scaler_.state()) state.push_back(std::move(each));
    return state;
  }

 private:
  const NamedTensors parameters_;
  GradScaler scaler_;
  Sgd sgd_;
};

stoker::Result<int> train(const char* folder, std::uint64_t epochs) {
  STOKER_ASSIGN_OR_RETURN(session, Session::open({.name = "mixed", .checkpoints = "checkpoints"}));
  STOKER_ASSIGN_OR_RETURN(dataset, stoker::dataset::Dataset::open(folder, "train"));
  const at::Device device = session->device();
  at::manual_seed(1);
  Net net;
  net.to(device);
  const Rates rates{.lr = 0.02, .momentum = 0.9};
  const ModelState model = model_state(net);
  ScaledSgd sgd(model.parameters, device);
  STOKER_ASSIGN_OR_RETURN(parallel, session->begin(model, &sgd, rates));
  STOKER_ASSIGN_OR_RETURN(recipe, stoker::image::recipe("cifar-train"));
  STOKER_ASSIGN_OR_RETURN(
      loader, session->make_loader(dataset, {.seed = 1, .batch = 20, .transform = {.operations = recipe}}));
  while (loader->state().epoch < epochs) {
    STOKER_ASSIGN_OR_RETURN(batch, loader->next(stoker::Deadline::after(std::chrono::minutes(5))));
    if (!batch) continue;  // the epoch is over
    parallel->zero_grad();
    const at::Tensor images = image_tensor(*batch).to(device);
    const at::Tensor labels = label_tensor(*batch).to(device);
    at::Tensor loss;
    {
      const Autocast float16(device);
      STOKER_ASSIGN_OR_RETURN(logits, parallel->forward([&] { return net.forward(images); }));
      loss = at::cross_entropy_loss(logits, labels);
    }
    STOKER_RETURN_IF_ERROR(parallel->backward(sgd.scaled(loss)));
    sgd.step(rates);
    STOKER_ASSIGN_OR_RETURN(should_continue,
                            session->record_step(*batch, {.loss = loss.item<double>(), .lr = rates.lr}));
    if (session->rank().value == 0)
      std::printf("step %ld loss %.3f scale %.0f\n", session->steps(), loss.item<double>(), sgd.scale());
    if (!should_continue) break;
  }
  STOKER_RETURN_IF_ERROR(session->finish());
  return session->exit_code();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto code = train(argv[1], std::strtoull(argv[2], nullptr, 10));
  if (!code.ok()) std::fprintf(stderr, "%s\n", code.status().to_string().c_str());
  std::fflush(stdout);
  std::_Exit(code.ok() ? *code : 1);  // libtorch's static destructors take up to a second
}
