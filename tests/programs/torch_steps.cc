// For tests/training/test_exactness.py: one rank of a few training steps on given batches, through the torch
// room alone.
//
//   torch-steps init   MODEL CLASSES SEED OUT                     writes a new model's state
//   torch-steps logits MODEL CLASSES SEED BATCHES OUT             writes the logits of the first batch,
//   evaluating torch-steps train  MODEL CLASSES SEED BATCHES OUT [bucketed]  RANK, WORLD_SIZE, MASTER_ADDR
//   and MASTER_PORT as usual
//   torch-steps cost   MODEL CLASSES SEED BATCHES OUT [STEPS]     writes CPU seconds of a step with and
//   without
//                                                                 communication, in turns of five, over STEPS
//                                                                 of each
//
// BATCHES: little-endian int64 steps, batch, size; then for each step float32 images and int64 labels.
// OUT: for each tensor a line "<section> <name> <bytes>", then its bytes.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <time.h>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include "torch/data_parallel.h"
#include "torch/models/model.h"
#include "torch/optim/sgd.h"

namespace stoker::torch {
namespace {

struct Batches {
  std::int64_t steps = 0, batch = 0, size = 0;
  std::string bytes;

  static Batches read(const char* path) {
    std::ifstream file(path, std::ios::binary);
    Batches batches;
    std::int64_t head[3];
    file.read(reinterpret_cast<char*>(head), sizeof head);
    batches.steps = head[0];
    batches.batch = head[1];
    batches.size = head[2];
    batches.bytes.assign(std::istreambuf_iterator<char>(file), {});
    return batches;
  }
  std::int64_t image_bytes() const { return batch * 3 * size * size * 4; }
  at::Tensor images(std::int64_t step) { return at::from_blob(at(step), {batch, 3, size, size}, at::kFloat); }
  at::Tensor labels(std::int64_t step) { return at::from_blob(at(step) + image_bytes(), {batch}, at::kLong); }
  char* at(std::int64_t step) { return bytes.data() + step * (image_bytes() + batch * 8); }
};

void write(std::ofstream& out, const char* section, const NamedTensors& tensors) {
  for (const NamedTensor& item : tensors) {
    const at::Tensor tensor = item.tensor.contiguous();
    out << section << ' ' << item.name << ' ' << tensor.nbytes() << '\n';
    out.write(static_cast<const char*>(tensor.const_data_ptr()),
              static_cast<std::streamsize>(tensor.nbytes()));
  }
}

NamedTensors gradients(const NamedTensors& parameters) {
  NamedTensors gradients;
  for (const NamedTensor& item : parameters) gradients.push_back({item.name, item.tensor.grad()});
  return gradients;
}

Rendezvous meeting_from_environment() {
  Rendezvous meeting;
  meeting.rank = Rank(std::atoi(std::getenv("RANK")));
  meeting.world_size = WorldSize(std::atoi(std::getenv("WORLD_SIZE")));
  meeting.address = std::getenv("MASTER_ADDR");
  meeting.port = static_cast<std::uint16_t>(std::atoi(std::getenv("MASTER_PORT")));
  return meeting;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status cost(Model& model, Batches batches, std::ofstream& out, int steps) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  const ModelState& state = model.state();
  OK_OR_RETURN(parallel, DataParallel::wrap(*group, state.parameters, state.buffers,
                                            {.gradients = Gradients::bucketed}));
  const auto five_steps = [&]() -> Result<double> {
    const double started = cpu_seconds();
    for (int i = 0; i < 5; ++i) {
      parallel->zero_grad();
      OK_OR_RETURN(logits, parallel->forward([&] { return model.forward(batches.images(0)); }));
      RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, batches.labels(0))));
    }
    return cpu_seconds() - started;
  };
  RETURN_IF_ERROR(five_steps().status());
  double with_s = 0, without_s = 0;
  for (int turn = 0; turn < steps / 5; ++turn) {
    OK_OR_RETURN(with, five_steps());
    with_s += with;
    const DataParallel::NoSync no_sync(*parallel);
    OK_OR_RETURN(without, five_steps());
    without_s += without;
  }
  out << with_s / steps << ' ' << without_s / steps << '\n';
  return group->barrier();
}

Status train(Model& model, Batches batches, std::ofstream& out, Gradients gradients_as) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  const ModelState& state = model.state();
  OK_OR_RETURN(parallel,
               DataParallel::wrap(*group, state.parameters, state.buffers, {.gradients = gradients_as}));
  Sgd sgd(state.parameters, {.kind = Momentum::nesterov, .weight_decay = 5e-4});
  for (std::int64_t step = 0; step < batches.steps; ++step) {
    parallel->zero_grad();
    OK_OR_RETURN(logits, parallel->forward([&] { return model.forward(batches.images(step)); }));
    RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, batches.labels(step))));
    write(out, std::to_string(step).c_str(), gradients(state.parameters));
    sgd.step({.lr = 0.1, .momentum = 0.9});
  }
  write(out, "state", state.all);
  write(out, "momentum", sgd.state());
  if (parallel->waited_s() <= 0) return internal("no waiting was measured");
  if (group->traffic().bytes == 0) return internal("no traffic was measured");
  return group->barrier();
}

Status run(int argc, char** argv) {
  const std::string mode = argv[1];
  const ModelSpec spec{argv[2], std::atoll(argv[3]), static_cast<std::uint64_t>(std::atoll(argv[4]))};
  OK_OR_RETURN(model, make_model(spec));
  std::ofstream out(argv[mode == "init" ? 5 : 6], std::ios::binary);
  if (mode == "init") {
    write(out, "state", model->state().all);
  } else if (mode == "logits") {
    model->set_mode(Mode::evaluate);
    const ::c10::AutoGradMode no_grad(false);
    Batches batches = Batches::read(argv[5]);
    write(out, "state", model->state().all);
    write(out, "logits", {{"logits", model->forward(batches.images(0))}});
  } else if (mode == "cost") {
    RETURN_IF_ERROR(cost(*model, Batches::read(argv[5]), out, argc > 7 ? std::atoi(argv[7]) : 50));
  } else {
    RETURN_IF_ERROR(
        train(*model, Batches::read(argv[5]), out, argc > 7 ? Gradients::bucketed : Gradients::copied));
  }
  return out.flush() ? Status() : internal("could not write");
}

}  // namespace
}  // namespace stoker::torch

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const stoker::Status status = stoker::torch::run(argc, argv);
  if (!status.ok()) std::cerr << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
