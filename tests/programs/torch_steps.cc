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
//                      writes the median of microseconds of an all-reduce of BYTES of float32
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

#include "stoker/adaptive.h"
#include "stoker/data_parallel.h"
#include "stoker/ema.h"
#include "stoker/gradients.h"
#include "stoker/model.h"
#include "stoker/sgd.h"
#include "stoker/text.h"
#include "train/loss/objective.h"
#include "train/trainer/learn/numerics.h"

namespace stoker::train {
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
  at::Tensor input(std::int64_t step, const train::ModelSpec& spec, train::Input kind) {
    const at::Tensor flat = images(step).flatten(1);
    if (kind == train::Input::images) return images(step);
    if (kind == train::Input::numbers) return flat;
    return flat.slice(1, 0, spec.gpt.length).abs().mul(1000).to(at::kLong).remainder(spec.classes);
  }
  at::Tensor labels(std::int64_t step) { return at::from_blob(at(step) + image_bytes(), {batch}, at::kLong); }
  char* at(std::int64_t step) { return bytes.data() + step * (image_bytes() + batch * 8); }
};

void write(std::ofstream& out, const char* section, const train::NamedTensors& tensors) {
  for (const train::NamedTensor& item : tensors) {
    const at::Tensor tensor = item.tensor.contiguous();
    out << section << ' ' << item.name << ' ' << tensor.nbytes() << '\n';
    out.write(static_cast<const char*>(tensor.const_data_ptr()),
              static_cast<std::streamsize>(tensor.nbytes()));
  }
}

train::NamedTensors gradients(const train::NamedTensors& parameters) {
  train::NamedTensors gradients;
  for (const train::NamedTensor& item : parameters) gradients.push_back({item.name, item.tensor.grad()});
  return gradients;
}

train::RendezvousOptions rendezvous_from_environment() {
  train::RendezvousOptions rendezvous;
  rendezvous.rank = Rank(std::atoi(std::getenv("RANK")));
  rendezvous.world_size = WorldSize(std::atoi(std::getenv("WORLD_SIZE")));
  rendezvous.address = std::getenv("MASTER_ADDR");
  rendezvous.port = static_cast<std::uint16_t>(std::atoi(std::getenv("MASTER_PORT")));
  const char* transport = std::getenv("TRANSPORT");
  if (transport != nullptr && std::string_view(transport) == "gloo") rendezvous.transport = Transport::gloo;
  if (transport != nullptr && std::string_view(transport) == "shm")
    rendezvous.transport = Transport::shared_memory;
  if (const char* place = std::getenv("PLACE")) rendezvous.place = place;
  return rendezvous;
}

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of `clock` per step. Between turns the ranks wait for each other: on the clock on the wall a turn
// lasts until the slower one is done.
Status cost(train::Model& model, Batches batches, std::ofstream& out, int steps, clockid_t clock) {
  STOKER_ASSIGN_OR_RETURN(group, train::ProcessGroup::connect(rendezvous_from_environment()));
  const train::ModelState& state = model.state();
  STOKER_ASSIGN_OR_RETURN(
      parallel, train::DataParallel::wrap(*group, state.parameters, state.buffers,
                                          {.gradient_storage = train::GradientStorage::bucket_view}));
  const auto five_steps = [&]() -> Result<double> {
    const double started = seconds(clock);
    for (int i = 0; i < 5; ++i) {
      parallel->zero_grad();
      STOKER_ASSIGN_OR_RETURN(logits, parallel->forward([&] { return model.forward(batches.images(0)); }));
      STOKER_RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, batches.labels(0))));
    }
    if (clock == CLOCK_MONOTONIC) STOKER_RETURN_IF_ERROR(group->barrier());
    return seconds(clock) - started;
  };
  STOKER_RETURN_IF_ERROR(five_steps().status());
  for (int turn = 0; turn < steps / 5; ++turn) {
    STOKER_ASSIGN_OR_RETURN(with, five_steps());
    const train::DataParallel::NoSync no_sync(*parallel);
    STOKER_ASSIGN_OR_RETURN(without, five_steps());
    out << with / 5 << ' ' << without / 5 << '\n';
  }
  return group->barrier();
}

Status allreduce(char** arguments) {
  STOKER_ASSIGN_OR_RETURN(group, train::ProcessGroup::connect(rendezvous_from_environment()));
  const at::Tensor tensor = at::ones({std::atoll(arguments[0]) / 4}, at::kFloat);
  std::vector<double> microseconds(static_cast<std::size_t>(std::atoi(arguments[1])));
  STOKER_RETURN_IF_ERROR(group->all_reduce_sum(tensor));
  for (double& measured : microseconds) {
    const double started = seconds(CLOCK_MONOTONIC);
    STOKER_RETURN_IF_ERROR(group->all_reduce_sum(tensor));
    measured = 1e6 * (seconds(CLOCK_MONOTONIC) - started);
  }
  const auto middle = microseconds.begin() + static_cast<std::ptrdiff_t>(microseconds.size() / 2);
  std::nth_element(microseconds.begin(), middle, microseconds.end());
  std::ofstream(arguments[2]) << *middle << '\n';
  return group->barrier();
}

// How to train: words behind OUT.
struct Way {
  train::DataParallelOptions options;
  bool accumulates = false;  ///< a step is two halves of a batch, the first without sync

  static Way read(int count, char** words) {
    Way way;
    for (int i = 0; i < count; ++i) {
      const std::string_view word = words[i];
      if (word == "bucketed") way.options.gradient_storage = train::GradientStorage::bucket_view;
      if (word == "search") way.options.unused_parameters = train::UnusedParameters::find;
      if (word == "fixed") way.options.graph = train::Graph::static_graph;
      if (word == "float16") way.options.compression = Compression::float16;
      if (word == "bfloat16") way.options.compression = Compression::bfloat16;
      if (word == "synchronized") way.options.batch_norm_sync = train::BatchNormSync::all_ranks;
      if (word == "accumulate") way.accumulates = true;
    }
    return way;
  }
};

Status learn(train::DataParallel& parallel, train::Model& model, const at::Tensor& images,
             const at::Tensor& labels) {
  STOKER_ASSIGN_OR_RETURN(logits, parallel.forward([&] { return model.forward(images); }));
  return parallel.backward(at::cross_entropy_loss(logits, labels));
}

Status train(train::Model& model, Batches batches, std::ofstream& out, const Way& way) {
  STOKER_ASSIGN_OR_RETURN(group, train::ProcessGroup::connect(rendezvous_from_environment()));
  const train::ModelState& state = model.state();
  STOKER_ASSIGN_OR_RETURN(parallel,
                          train::DataParallel::wrap(*group, state.parameters, state.buffers, way.options));
  train::Sgd sgd(state.parameters, {.kind = train::Momentum::nesterov, .weight_decay = 5e-4});
  for (std::int64_t step = 0; step < batches.steps; ++step) {
    parallel->zero_grad();
    at::Tensor images = batches.images(step), labels = batches.labels(step);
    if (way.accumulates) {
      const std::int64_t half = batches.batch / 2;
      const train::DataParallel::NoSync no_sync(*parallel);
      STOKER_RETURN_IF_ERROR(learn(*parallel, model, images.slice(0, 0, half), labels.slice(0, 0, half)));
      images = images.slice(0, half);
      labels = labels.slice(0, half);
    }
    STOKER_RETURN_IF_ERROR(learn(*parallel, model, images, labels));
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
  train::UnusedParameters unused = train::UnusedParameters::never;
  Rank rank{0};
};

// Two passes per step; only the second averages. Random numbers as in reference.py.
Status recipe_step(train::DataParallel& parallel, train::Model& model, Batches& batches, std::int64_t step,
                   const Recipe& recipe) {
  for (std::int64_t i = 0; i < 2; ++i) {
    std::optional<train::DataParallel::NoSync> no_sync;
    if (i == 0) no_sync.emplace(parallel);
    const std::int64_t own = 1000 * step + 10 * i + recipe.rank.value;
    model.reseed({static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(own)});
    STOKER_ASSIGN_OR_RETURN(logits, parallel.forward([&] {
      const train::Autocast autocast(recipe.precision, at::kCPU);
      return model.forward(batches.images(2 * step + i));
    }));
    const MixedTargets targets{.labels = batches.labels(2 * step + i)};
    STOKER_RETURN_IF_ERROR(parallel.backward(training_loss(logits.to(at::kFloat), targets, 0.1).div(2)));
  }
  return {};
}

train::NamedTensors defined(train::NamedTensors tensors) {
  std::erase_if(tensors, [](const train::NamedTensor& item) { return !item.tensor.defined(); });
  return tensors;
}

Status train_recipe(train::Model& model, Batches batches, std::ofstream& out, Recipe recipe) {
  STOKER_ASSIGN_OR_RETURN(group, train::ProcessGroup::connect(rendezvous_from_environment()));
  recipe.rank = group->rank();
  const train::ModelState& state = model.state();
  STOKER_ASSIGN_OR_RETURN(parallel, train::DataParallel::wrap(*group, state.parameters, state.buffers,
                                                              {.unused_parameters = recipe.unused}));
  train::AdamW optimizer(state.parameters, {.weight_decay = 0.05});
  train::Ema ema(state.parameters, 0.9);
  for (std::int64_t step = 0; step < batches.steps / 2; ++step) {
    parallel->zero_grad();
    STOKER_RETURN_IF_ERROR(recipe_step(*parallel, model, batches, step, recipe));
    const double norm = clip_grad_norm(state.parameters, 1).item<double>();
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
Status first_step(train::Model& model, Batches batches, std::ofstream& out) {
  train::Sgd sgd(model.state().parameters, {.kind = train::Momentum::nesterov, .weight_decay = 5e-4});
  at::cross_entropy_loss(model.forward(batches.images(0)), batches.labels(0)).backward();
  sgd.step({.lr = 0.1, .momentum = 0.9});
  out << format("{:.6f}\n", seconds(CLOCK_REALTIME));
  return {};
}

// Moves the weights once: a head of zeros would give logits of zeros.
void train_once(train::Model& model, const at::Tensor& input, const at::Tensor& labels) {
  const at::Tensor logits = model.forward(input);
  const at::Tensor targets = logits.dim() == 3 ? input.flatten() : labels;
  at::cross_entropy_loss(logits.flatten(0, -2), targets).backward();
  const ::c10::AutoGradMode no_grad(false);
  for (const train::NamedTensor& item : model.state().parameters) item.tensor.sub_(item.tensor.grad(), 1e-3);
}

Status run(int argc, char** argv) {
  const std::string mode = argv[1];
  if (mode == "allreduce") return allreduce(argv + 2);
  Batches batches = Batches::read(argv[5]);
  train::ModelSpec spec{argv[2], std::atoll(argv[3]), static_cast<std::uint64_t>(std::atoll(argv[4]))};
  const std::string how = argc > 7 ? argv[7] : "";
  if (how == "variants") {
    spec.heads = 2;
    spec.drop = 0.5;
  }
  spec.image_size = batches.size;
  spec.gpt = {.layers = 2, .heads = 2, .width = 16, .length = 12};
  spec.mlp = {3 * spec.image_size * spec.image_size, 24, 16};
  STOKER_ASSIGN_OR_RETURN(model, make_model(spec));
  std::ofstream out(argv[6], std::ios::binary);
  if (mode == "logits") {
    write(out, "initial", model->state().all);
    const at::Tensor input = batches.input(0, spec, model->input());
    train_once(*model, input, batches.labels(0));
    model->set_mode(train::Mode::evaluate);
    const ::c10::AutoGradMode no_grad(false);
    write(out, "state", model->state().all);
    write(out, "logits", {{"logits", model->forward(input)}});
  } else if (mode == "cost" || mode == "pace") {
    STOKER_RETURN_IF_ERROR(cost(*model, std::move(batches), out, argc > 7 ? std::atoi(argv[7]) : 50,
                                mode == "cost" ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC));
  } else if (mode == "first-step") {
    STOKER_RETURN_IF_ERROR(first_step(*model, std::move(batches), out));
  } else if (mode == "recipe") {
    const Recipe recipe{
        .precision = how == "bf16" ? job::Precision::bf16 : job::Precision::fp32,
        .unused = how == "variants" ? train::UnusedParameters::find : train::UnusedParameters::never};
    STOKER_RETURN_IF_ERROR(train_recipe(*model, std::move(batches), out, recipe));
  } else {
    STOKER_RETURN_IF_ERROR(train(*model, std::move(batches), out, Way::read(argc - 7, argv + 7)));
  }
  return out.flush() ? Status() : internal("could not write");
}

}  // namespace
}  // namespace stoker::train

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const stoker::Status status = stoker::train::run(argc, argv);
  if (!status.ok()) std::cerr << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
