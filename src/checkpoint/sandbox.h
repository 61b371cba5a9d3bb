// For this room's tests: a small training, saved by threads that each act as a rank.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "archive/safetensors.h"
#include "base/file.h"
#include "checkpoint/read/catalog.h"
#include "stoker/checkpoint.h"

namespace stoker::checkpoint {

using namespace std::chrono_literals;

/// Tensors of every interesting kind, filled from a seed: large and split, small, scalar, empty, of each
/// width.
class ToyModel {
 public:
  explicit ToyModel(std::uint64_t seed) {
    add(parameters_, "conv.weight", DType::f32, {64, 3, 32, 32}, seed);
    add(parameters_, "fc.weight", DType::f32, {1000, 200}, seed + 1);
    add(parameters_, "fc.bias", DType::f32, {1000}, seed + 2);
    add(parameters_, "half", DType::bf16, {333, 7}, seed + 3);
    add(parameters_, "nothing", DType::f32, {0, 5}, seed + 4);
    add(buffers_, "bn.running_mean", DType::f32, {64}, seed + 5);
    add(buffers_, "bn.num_batches_tracked", DType::i64, {}, seed + 6);
    add(buffers_, "mask", DType::boolean, {13}, seed + 7);
    for (std::byte& b : buffers_.back()->bytes) b &= std::byte{1};  // safetensors' booleans are 0 or 1
    add(optimizer_, "state.conv.weight.momentum_buffer", DType::f32, {64, 3, 32, 32}, seed + 8);
    add(optimizer_, "state.fc.weight.momentum_buffer", DType::f32, {1000, 200}, seed + 9);
    add(optimizer_, "state.fc.weight.step", DType::i64, {}, seed + 10);
  }

  StepContents contents(Step step) const {
    StepContents c{.step = step,
                   .parameters = views<TensorView>(parameters_),
                   .buffers = views<TensorView>(buffers_),
                   .optimizer = views<TensorView>(optimizer_),
                   .state = {},
                   .rank_state = {},
                   .hyper_parameters = {}};
    c.state.set("epoch", step.value / 10);
    c.state.set("lr", 0.1 * static_cast<double>(step.value));
    c.hyper_parameters.set("momentum", 0.9);
    return c;
  }
  Targets targets() {
    Targets t;
    t.model = views<MutableTensorView>(parameters_);
    for (MutableTensorView& view : views<MutableTensorView>(buffers_)) t.model.push_back(view);
    t.optimizer = views<MutableTensorView>(optimizer_);
    return t;
  }
  bool operator==(const ToyModel& other) const {
    return parameters_same(parameters_, other.parameters_) && parameters_same(buffers_, other.buffers_) &&
           parameters_same(optimizer_, other.optimizer_);
  }
  /// Different bytes in rank-local buffers, as with batch norm.
  void disturb_buffers() {
    for (auto& tensor : buffers_) {
      for (std::byte& b : tensor->bytes) b ^= std::byte{1};
    }
  }

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  using Tensors = std::vector<std::unique_ptr<Tensor>>;

  static void add(Tensors& list, std::string name, DType dtype, Shape shape, std::uint64_t seed) {
    std::vector<std::byte> bytes(*archive::tensor_bytes(dtype, shape));
    for (std::byte& b : bytes) {
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      b = static_cast<std::byte>(seed >> 56);
    }
    list.push_back(
        std::make_unique<Tensor>(Tensor{std::move(name), dtype, std::move(shape), std::move(bytes)}));
  }
  template <typename View>
  static std::vector<View> views(const Tensors& list) {
    std::vector<View> all;
    for (const auto& t : list) all.push_back(View{t->name, t->dtype, t->shape, t->bytes});
    return all;
  }
  static bool parameters_same(const Tensors& a, const Tensors& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i]->bytes != b[i]->bytes) return false;
    }
    return true;
  }

  Tensors parameters_, buffers_, optimizer_;
};

/// Folder for a test's files. A disk takes milliseconds for each of the many syncs of a save, and only a disk
/// supports direct I/O; a killed process leaves the same in both.
enum class Storage { memory, disk };

/// A checkpoint directory and ranks that save into it.
class Sandbox {
 public:
  const Path& directory() const { return directory_; }
  explicit Sandbox(Storage place = Storage::memory)
      : temporary_(root(place)), directory_(temporary_ / "ckpt") {}
  explicit Sandbox(Path directory) : directory_(std::move(directory)) {}

  SaverOptions options(int rank, int world) const {
    SaverOptions o;
    o.directory = directory_;
    o.rank = Rank{rank};
    o.world_size = WorldSize{world};
    o.run = "run-a";
    o.writer = writer;
    o.keep_last = keep_last;
    o.limit = limit;
    return o;
  }

  /// All ranks save `steps` of a model whose seed is the step. Returns the statuses of finish() or the first
  /// errors.
  std::vector<Status> save(int world, const std::vector<std::int64_t>& steps,
                           const std::function<void(SaverOptions&)>& change = {}) const {
    std::vector<Status> statuses(static_cast<std::size_t>(world));
    std::vector<std::thread> ranks;
    for (int r = 0; r < world; ++r) {
      ranks.emplace_back([&, r] {
        SaverOptions o = options(r, world);
        if (change) change(o);
        statuses[static_cast<std::size_t>(r)] = save_rank(o, steps);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return statuses;
  }
  void save_well(int world, const std::vector<std::int64_t>& steps) const {
    for (const Status& status : save(world, steps)) ASSERT_TRUE(status.ok()) << status.to_string();
  }

  static Status save_rank(const SaverOptions& options, const std::vector<std::int64_t>& steps) {
    STOKER_ASSIGN_OR_RETURN(saver, Saver::create(options));
    for (const std::int64_t step : steps) {
      ToyModel model(static_cast<std::uint64_t>(step) * 100);
      if (options.rank.value != 0) model.disturb_buffers();
      StepContents contents = model.contents(Step{step});
      contents.rank_state.set("rank", std::int64_t{options.rank.value});
      STOKER_RETURN_IF_ERROR(saver->save(contents));
    }
    return saver->finish(Deadline::after(60s));
  }

  Path step(std::int64_t n) const { return directory_ / ("step-" + std::to_string(n)); }
  Path file(std::int64_t n, int rank, const char* part = "model") const {
    char name[80];
    std::snprintf(name, sizeof name, "%s/shard-%05d-%s-00001-of-00001.safetensors", part, rank + 1, part);
    return step(n) / name;
  }

  /// "10 valid, 20 torn: why": the list output, oldest first.
  std::string list(Depth depth = Depth::structure) const {
    const auto steps = list_steps(directory_, depth, RealClock().wall());
    if (!steps.ok()) return steps.error().to_string();
    std::string text;
    for (auto s = steps->rbegin(); s != steps->rend(); ++s) {
      text += format("{}{} {}{}{}", text.empty() ? "" : ", ", s->step, to_text(s->state),
                     s->why.empty() ? "" : ": ", s->why);
    }
    return text;
  }
  bool loads_exactly(std::int64_t n, int rank = 0, int world = 1) const {
    ToyModel model(7);
    const auto loaded = load(step(n), {Rank{rank}, WorldSize{world}}, model.targets());
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    return loaded.ok() && model == ToyModel(static_cast<std::uint64_t>(n) * 100);
  }

  std::string writer = "1";
  int keep_last = 3;
  Duration limit = 30s;

 private:
  static Path root(Storage place) {
    const Path memory = "/dev/shm";
    if (place == Storage::memory && ::access(memory.c_str(), W_OK | X_OK) == 0) return memory;
    return std::filesystem::temp_directory_path();
  }

  TempDirectory temporary_;
  Path directory_;
};

}  // namespace stoker::checkpoint
