// For tests/training/test_exactness.py: one rank of a few training steps on given batches, through the torch
// room alone.
//
//   torch-steps MODE MODEL CLASSES SEED BATCHES OUT [EXTRA]
//
//   logits             writes the initial state, trains one step, then writes the state and the logits of the
//                      first batch, evaluating
//   train [WORD]...    RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as usual; words: see Way
//   recipe [HOW]       AdamW, two passes a step, clipping, a mean of weights, smoothed labels; the same
//                      environment. HOW is bf16, or variants: two heads, and blocks left out by chance
//   cost [STEPS]       writes CPU seconds of a step with and without communication, which take turns of five
//                      steps, over STEPS of each: a line for each two turns
//   pace [STEPS]       the same in seconds of wall clock, until the slower rank is done
//   first-step         makes one step by itself and writes the time of day at its end: what a rank of nothing
//                      but libtorch needs
//
//   torch-steps allreduce BYTES REPEATS OUT
//
//                      writes the median of microseconds of a sum of so many bytes of float32
//
// TRANSPORT=gloo or shm in the environment: what the ranks talk through; else as they choose. PLACE: which
// host this shall be. BATCHES: little-endian int64 steps, batch, size; then for each step float32 images and
// int64 labels. OUT: for each tensor a line "<section> <name> <bytes>", then its bytes.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string_view>
#include <time.h>
#include <utility>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include "base/text.h"
#include "torch/data_parallel.h"
#include "torch/loss/objective.h"
#include "torch/models/model.h"
#include "torch/optim/adaptive.h"
#include "torch/optim/ema.h"
#include "torch/optim/gradients.h"
#include "torch/optim/sgd.h"
#include "torch/trainer/learn/numerics.h"

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
  // What the model takes of the same numbers.
  at::Tensor input(std::int64_t step, const ModelSpec& spec, Input kind) {
    const at::Tensor flat = images(step).flatten(1);
    if (kind == Input::images) return images(step);
    if (kind == Input::numbers) return flat;
    return flat.slice(1, 0, spec.gpt.length).abs().mul(1000).to(at::kLong).remainder(spec.classes);
  }
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
  const char* transport = std::getenv("TRANSPORT");
  if (transport != nullptr && std::string_view(transport) == "gloo") meeting.transport = Transport::gloo;
  if (transport != nullptr && std::string_view(transport) == "shm")
    meeting.transport = Transport::shared_memory;
  if (const char* place = std::getenv("PLACE")) meeting.place = place;
  return meeting;
}

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of `clock` per step. Between turns the ranks wait for each other: on the clock on the wall a turn
// lasts until the slower one is done.
Status cost(Model& model, Batches batches, std::ofstream& out, int steps, clockid_t clock) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  const ModelState& state = model.state();
  OK_OR_RETURN(parallel, DataParallel::wrap(*group, state.parameters, state.buffers,
                                            {.gradients = Gradients::bucketed}));
  const auto five_steps = [&]() -> Result<double> {
    const double started = seconds(clock);
    for (int i = 0; i < 5; ++i) {
      parallel->zero_grad();
      OK_OR_RETURN(logits, parallel->forward([&] { return model.forward(batches.images(0)); }));
      RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, batches.labels(0))));
    }
    if (clock == CLOCK_MONOTONIC) RETURN_IF_ERROR(group->barrier());
    return seconds(clock) - started;
  };
  RETURN_IF_ERROR(five_steps().status());
  for (int turn = 0; turn < steps / 5; ++turn) {
    OK_OR_RETURN(with, five_steps());
    const DataParallel::NoSync no_sync(*parallel);
    OK_OR_RETURN(without, five_steps());
    out << with / 5 << ' ' << without / 5 << '\n';
  }
  return group->barrier();
}

Status allreduce(char** arguments) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  const at::Tensor tensor = at::ones({std::atoll(arguments[0]) / 4}, at::kFloat);
  std::vector<double> microseconds(static_cast<std::size_t>(std::atoi(arguments[1])));
  RETURN_IF_ERROR(group->sum(tensor));
  for (double& measured : microseconds) {
    const double started = seconds(CLOCK_MONOTONIC);
    RETURN_IF_ERROR(group->sum(tensor));
    measured = 1e6 * (seconds(CLOCK_MONOTONIC) - started);
  }
  const auto middle = microseconds.begin() + static_cast<std::ptrdiff_t>(microseconds.size() / 2);
  std::nth_element(microseconds.begin(), middle, microseconds.end());
  std::ofstream(arguments[2]) << *middle << '\n';
  return group->barrier();
}

// How to train: words behind OUT.
struct Way {
  DataParallelOptions options;
  bool accumulates = false;  ///< a step is two halves of a batch, the first without sync

  static Way read(int count, char** words) {
    Way way;
    for (int i = 0; i < count; ++i) {
      const std::string_view word = words[i];
      if (word == "bucketed") way.options.gradients = Gradients::bucketed;
      if (word == "search") way.options.unused = Unused::search;
      if (word == "fixed") way.options.graph = Graph::fixed;
      if (word == "float16") way.options.compression = Compression::float16;
      if (word == "bfloat16") way.options.compression = Compression::bfloat16;
      if (word == "synchronized") way.options.statistics = Statistics::of_all_ranks;
      if (word == "accumulate") way.accumulates = true;
    }
    return way;
  }
};

Status learn(DataParallel& parallel, Model& model, const at::Tensor& images, const at::Tensor& labels) {
  OK_OR_RETURN(logits, parallel.forward([&] { return model.forward(images); }));
  return parallel.backward(at::cross_entropy_loss(logits, labels));
}

Status train(Model& model, Batches batches, std::ofstream& out, const Way& way) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  const ModelState& state = model.state();
  OK_OR_RETURN(parallel, DataParallel::wrap(*group, state.parameters, state.buffers, way.options));
  Sgd sgd(state.parameters, {.kind = Momentum::nesterov, .weight_decay = 5e-4});
  for (std::int64_t step = 0; step < batches.steps; ++step) {
    parallel->zero_grad();
    at::Tensor images = batches.images(step), labels = batches.labels(step);
    if (way.accumulates) {
      const std::int64_t half = batches.batch / 2;
      const DataParallel::NoSync no_sync(*parallel);
      RETURN_IF_ERROR(learn(*parallel, model, images.slice(0, 0, half), labels.slice(0, 0, half)));
      images = images.slice(0, half);
      labels = labels.slice(0, half);
    }
    RETURN_IF_ERROR(learn(*parallel, model, images, labels));
    write(out, std::to_string(step).c_str(), gradients(state.parameters));
    sgd.step({.lr = 0.1, .momentum = 0.9});
  }
  write(out, "state", state.all);
  write(out, "momentum", sgd.state());
  if (group->world_size().value > 1) {
    if (parallel->waited_s() <= 0) return internal("no waiting was measured");
    if (group->traffic().bytes == 0) return internal("no traffic was measured");
  }
  return group->barrier();
}

struct Recipe {
  job::Precision precision = job::Precision::fp32;
  Unused unused = Unused::never;
  Rank rank{0};
};

// Two passes a step, of which only the second averages. Chance is as reference.py has it.
Status recipe_step(DataParallel& parallel, Model& model, Batches& batches, std::int64_t step,
                   const Recipe& recipe) {
  for (std::int64_t i = 0; i < 2; ++i) {
    std::optional<DataParallel::NoSync> no_sync;
    if (i == 0) no_sync.emplace(parallel);
    const std::int64_t own = 1000 * step + 10 * i + recipe.rank.value;
    model.draw({static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(own)});
    OK_OR_RETURN(logits, parallel.forward([&] {
      const Autocast autocast(recipe.precision);
      return model.forward(batches.images(2 * step + i));
    }));
    const Targets targets{.labels = batches.labels(2 * step + i)};
    RETURN_IF_ERROR(parallel.backward(training_loss(logits.to(at::kFloat), targets, 0.1).div(2)));
  }
  return {};
}

NamedTensors defined(NamedTensors tensors) {
  std::erase_if(tensors, [](const NamedTensor& item) { return !item.tensor.defined(); });
  return tensors;
}

Status train_recipe(Model& model, Batches batches, std::ofstream& out, Recipe recipe) {
  OK_OR_RETURN(group, ProcessGroup::connect(meeting_from_environment()));
  recipe.rank = group->rank();
  const ModelState& state = model.state();
  OK_OR_RETURN(parallel,
               DataParallel::wrap(*group, state.parameters, state.buffers, {.unused = recipe.unused}));
  AdamW optimizer(state.parameters, {.weight_decay = 0.05});
  Ema ema(state.parameters, 0.9);
  for (std::int64_t step = 0; step < batches.steps / 2; ++step) {
    parallel->zero_grad();
    RETURN_IF_ERROR(recipe_step(*parallel, model, batches, step, recipe));
    const double norm = clip_gradients(state.parameters, 1);
    if (norm <= 1) return internal("nothing was clipped: the norm is {}", norm);
    write(out, std::to_string(step).c_str(), defined(gradients(state.parameters)));
    optimizer.step({.lr = 0.01, .momentum = 0.9});
    ema.update(step + 1);
  }
  write(out, "state", state.all);
  write(out, "optimizer", optimizer.state());
  write(out, "ema", ema.state());
  return group->barrier();
}

// Without other ranks.
Status first_step(Model& model, Batches batches, std::ofstream& out) {
  Sgd sgd(model.state().parameters, {.kind = Momentum::nesterov, .weight_decay = 5e-4});
  at::cross_entropy_loss(model.forward(batches.images(0)), batches.labels(0)).backward();
  sgd.step({.lr = 0.1, .momentum = 0.9});
  out << format("{:.6f}\n", seconds(CLOCK_REALTIME));
  return {};
}

// Moves the weights once: a head of zeros would give logits of zeros.
void train_once(Model& model, const at::Tensor& input, const at::Tensor& labels) {
  const at::Tensor logits = model.forward(input);
  const at::Tensor targets = logits.dim() == 3 ? input.flatten() : labels;
  at::cross_entropy_loss(logits.flatten(0, -2), targets).backward();
  const ::c10::AutoGradMode no_grad(false);
  for (const NamedTensor& item : model.state().parameters) item.tensor.sub_(item.tensor.grad(), 1e-3);
}

Status run(int argc, char** argv) {
  const std::string mode = argv[1];
  if (mode == "allreduce") return allreduce(argv + 2);
  Batches batches = Batches::read(argv[5]);
  ModelSpec spec{argv[2], std::atoll(argv[3]), static_cast<std::uint64_t>(std::atoll(argv[4]))};
  const std::string how = argc > 7 ? argv[7] : "";
  if (how == "variants") {
    spec.heads = 2;
    spec.drop = 0.5;
  }
  spec.image_size = batches.size;
  spec.gpt = {.layers = 2, .heads = 2, .width = 16, .length = 12};
  spec.mlp = {3 * spec.image_size * spec.image_size, 24, 16};
  OK_OR_RETURN(model, make_model(spec));
  std::ofstream out(argv[6], std::ios::binary);
  if (mode == "logits") {
    write(out, "initial", model->state().all);
    const at::Tensor input = batches.input(0, spec, model->input());
    train_once(*model, input, batches.labels(0));
    model->set_mode(Mode::evaluate);
    const ::c10::AutoGradMode no_grad(false);
    write(out, "state", model->state().all);
    write(out, "logits", {{"logits", model->forward(input)}});
  } else if (mode == "cost" || mode == "pace") {
    RETURN_IF_ERROR(cost(*model, std::move(batches), out, argc > 7 ? std::atoi(argv[7]) : 50,
                         mode == "cost" ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC));
  } else if (mode == "first-step") {
    RETURN_IF_ERROR(first_step(*model, std::move(batches), out));
  } else if (mode == "recipe") {
    const Recipe recipe{.precision = how == "bf16" ? job::Precision::bf16 : job::Precision::fp32,
                        .unused = how == "variants" ? Unused::search : Unused::never};
    RETURN_IF_ERROR(train_recipe(*model, std::move(batches), out, recipe));
  } else {
    RETURN_IF_ERROR(train(*model, std::move(batches), out, Way::read(argc - 7, argv + 7)));
  }
  return out.flush() ? Status() : internal("could not write");
}

}  // namespace
}  // namespace stoker::torch

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const stoker::Status status = stoker::torch::run(argc, argv);
  if (!status.ok()) std::cerr << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
