// Trains a custom network data parallel, on GPUs if there are any, and validates it: train DATASET EPOCHS
#include <cstdio>
#include <cstdlib>
#include <stoker/session.h>
#include <stoker/sgd.h>

#include <ATen/Context.h>
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

// Top-1 over all ranks.
stoker::Result<double> validate(Session& session, Net& net, const stoker::dataset::Dataset& dataset) {
  STOKER_ASSIGN_OR_RETURN(recipe, stoker::image::recipe("cifar-eval"));
  STOKER_ASSIGN_OR_RETURN(loader,
                          session.validation(dataset, {.batch = 100, .transform = {.operations = recipe}}));
  const torch::NoGradGuard no_grad;
  double sums[2] = {};  // correct, samples
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(batch, loader->next(stoker::Deadline::after(std::chrono::minutes(5))));
    if (!batch) break;
    const at::Tensor scores = net.forward(image_tensor(*batch).to(session.device()));
    sums[0] += scores.argmax(1).cpu().eq(label_tensor(*batch)).sum().item<double>();
    sums[1] += batch->count();
  }
  STOKER_RETURN_IF_ERROR(session.group().all_reduce_sum(sums));
  return sums[0] / sums[1];
}

stoker::Result<int> train(const char* folder, std::uint64_t epochs) {
  STOKER_ASSIGN_OR_RETURN(session,
                          Session::open({.name = "net", .checkpoints = "checkpoints", .save_every = 20}));
  STOKER_ASSIGN_OR_RETURN(dataset, stoker::dataset::Dataset::open(folder, "train"));
  at::manual_seed(1);
  Net net;
  net.to(session->device());
  const Rates rates{.lr = 0.02, .momentum = 0.9};
  const ModelState model = model_state(net);
  Sgd sgd(model.parameters, {.kind = Momentum::nesterov});
  STOKER_ASSIGN_OR_RETURN(parallel, session->begin(model, &sgd, rates));
  STOKER_ASSIGN_OR_RETURN(recipe, stoker::image::recipe("cifar-train"));
  STOKER_ASSIGN_OR_RETURN(
      loader, session->make_loader(dataset, {.seed = 1, .batch = 20, .transform = {.operations = recipe}}));
  while (loader->state().epoch < epochs) {
    STOKER_ASSIGN_OR_RETURN(batch, loader->next(stoker::Deadline::after(std::chrono::minutes(5))));
    if (!batch) continue;  // the epoch is over
    parallel->zero_grad();
    const at::Tensor images = image_tensor(*batch).to(session->device());
    STOKER_ASSIGN_OR_RETURN(logits, parallel->forward([&] { return net.forward(images); }));
    const at::Tensor loss = at::cross_entropy_loss(logits, label_tensor(*batch).to(session->device()));
    STOKER_RETURN_IF_ERROR(parallel->backward(loss));
    sgd.step(rates);
    STOKER_ASSIGN_OR_RETURN(should_continue,
                            session->record_step(*batch, {.loss = loss.item<double>(), .lr = rates.lr}));
    if (session->rank().value == 0)
      std::printf("step %ld loss %.3f\n", session->steps(), loss.item<double>());
    if (!should_continue) break;
  }
  if (session->exit_code() == 0) {
    STOKER_ASSIGN_OR_RETURN(test, stoker::dataset::Dataset::open(folder, "test"));
    STOKER_ASSIGN_OR_RETURN(top1, validate(*session, net, test));
    if (session->rank().value == 0) std::printf("top-1 %.1f %%\n", top1 * 100);
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
