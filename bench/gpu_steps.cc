// Steps of the trainer on one batch of random numbers that stays on the device: what a GPU can do, without
// data. bench/gpu/steps.py does the same in PyTorch.
//
//   gpu-steps [--device cpu] WORKLOAD... [--steps N] [--modes eager,graph,nccl,nccl-graph]
//
// WORKLOAD: resnet50-256, resnet50-128, resnet50-32, resnet18-64, cifar-resnet20-128,
// cifar-resnet20-128-fp32. A line of JSON for each workload and mode: eager, graph (train.cuda_graph: auto),
// nccl (eager with c10d's Reducer over NCCL, a world of one rank, beside eager in turns), nccl-graph (the
// same captured, beside graph in turns). images_per_s is the median of the windows, spread the largest
// difference from it.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "base/stopwatch.h"
#include "net/port.h"
#include "train/device/device.h"
#include "train/trainer/learn/learner.h"
#include "train/trainer/learn/numerics.h"

namespace {

using namespace stoker;
using namespace stoker::train;

struct Workload {
  std::string_view name;
  std::string_view model;
  std::int64_t classes, size, batch;
  job::Precision precision;
  bool channels_last;
};

constexpr std::array kWorkloads = {
    Workload{"resnet50-256", "resnet50", 1000, 224, 256, job::Precision::bf16, true},
    Workload{"resnet50-128", "resnet50", 1000, 224, 128, job::Precision::bf16, true},
    Workload{"resnet50-32", "resnet50", 1000, 224, 32, job::Precision::bf16, true},
    Workload{"resnet18-64", "resnet18", 1000, 224, 64, job::Precision::bf16, true},
    Workload{"cifar-resnet20-128", "cifar-resnet20", 10, 32, 128, job::Precision::bf16, true},
    Workload{"cifar-resnet20-128-fp32", "cifar-resnet20", 10, 32, 128, job::Precision::fp32, false},
};

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "gpu-steps: %s\n", status.to_string().c_str());
  std::exit(1);
}

template <typename T>
T value_or_fail(Result<T> result) {
  if (!result.ok()) fail(result.status());
  return std::move(*result);
}

job::TrainOptions options_of(const Workload& workload, job::CudaGraphs graphs) {
  job::TrainOptions train;
  train.batch = static_cast<std::uint32_t>(workload.batch);
  train.accumulate = 1;
  train.precision = workload.precision;
  train.channels_last = workload.channels_last;
  train.cuda_graph = graphs;
  train.threads = 1;
  train.bucket = ByteCount{25u << 20};
  train.optimizer = {.kind = job::OptimizerKind::sgd, .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4};
  train.schedule.kind = job::ScheduleKind::constant;
  return train;
}

// One training on a batch that stays on the device.
class Steps {
 public:
  Steps(const Workload& workload, const job::TrainOptions& train, at::Device device, Transport transport)
      : device_(device) {
    RendezvousOptions rendezvous;
    rendezvous.transport = transport;
    port_ = value_or_fail(net::PortReservation::find(1));
    rendezvous.port = port_.port();
    group_ = value_or_fail(ProcessGroup::connect(rendezvous));
    if (const Status used = group_->use_device(device); !used.ok()) fail(used);
    ModelSpec spec{.name = std::string(workload.model), .classes = workload.classes};
    spec.image_size = workload.size;
    model_ = value_or_fail(make_model(spec));
    move_to(model_->state(), device, train.channels_last);
    learner_.emplace(train, Rank{0}, *model_, device);
    parallel_ = value_or_fail(
        DataParallel::wrap(*group_, model_->state().parameters, model_->state().buffers,
                           {.gradient_storage = GradientStorage::bucket_view, .bucket = train.bucket}));
    learner_->allow_graphs({.device = device, .has_peers = parallel_->has_peers()});
    const at::TensorOptions there = at::TensorOptions().device(device);
    at::Tensor images = at::randn({workload.batch, 3, workload.size, workload.size}, there);
    if (train.precision == job::Precision::bf16) images = images.to(at::kBFloat16);
    if (train.channels_last) images = images.contiguous(at::MemoryFormat::ChannelsLast);
    batch_ = {{images, at::randint(workload.classes, {workload.batch}, there.dtype(at::kLong))},
              workload.batch,
              nullptr};
  }

  // The loss of the last one.
  double run(int steps) {
    double loss = 0;
    for (int i = 0; i < steps; ++i) {
      StepRow row;
      row.step = ++step_;
      const Rates rates{.lr = 0.01, .momentum = 0.9};
      const bool in_graph = value_or_fail(learner_->run_in_graph(*parallel_, batch_, rates, row));
      if (!in_graph) run_eager(rates, row);
      graph_steps_ += in_graph ? 1 : 0;
      if (const auto notice = learner_->notice()) std::fprintf(stderr, "%s\n", notice->c_str());
      pending_.emplace_back(row, learner_->take_metrics());
      while (pending_.size() > 2) loss = finish_oldest(loss);
    }
    while (!pending_.empty()) loss = finish_oldest(loss);
    return loss;
  }
  bool has_used_graph() const { return graph_steps_ > 0; }

 private:
  void run_eager(const Rates& rates, StepRow& row) {
    if (const Status done = learner_->forward_backward(*parallel_, recorder_, batch_, {}, row); !done.ok())
      fail(done);
    if (const Status done = learner_->update(*parallel_, rates, row); !done.ok()) fail(done);
  }
  double finish_oldest(double loss) {
    auto& [row, metrics] = pending_.front();
    metrics.finish(row);
    loss = row.loss;
    pending_.pop_front();
    return loss;
  }

  const at::Device device_;
  net::PortReservation port_;
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<Model> model_;
  std::optional<Learner> learner_;
  std::unique_ptr<DataParallel> parallel_;
  Recorder recorder_;
  DeviceBatch batch_;
  std::deque<std::pair<StepRow, PendingMetrics>> pending_;
  std::int64_t step_ = 0;
  std::int64_t graph_steps_ = 0;
};

struct Speed {
  std::vector<double> rates;
  double loss = 0;

  void measure(Steps& steps, int count, std::int64_t batch) {
    const Stopwatch watch;
    loss = steps.run(count);
    rates.push_back(static_cast<double>(count * batch) / watch.seconds());
  }
  double median() {
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
  }
  double spread() { return std::max(median() - rates.front(), rates.back() - median()) / median(); }
};

void print(const Workload& workload, std::string_view mode, Speed speed) {
  std::printf(R"({"workload": "%s", "mode": "%s", "images_per_s": %.1f, "spread": %.4f, "loss": %.4f})"
              "\n",
              std::string(workload.name).c_str(), std::string(mode).c_str(), speed.median(), speed.spread(),
              speed.loss);
  std::fflush(stdout);
}

constexpr int kWindows = 3;
constexpr int kWarmUp = 15;

void bench_alone(const Workload& workload, at::Device device, int steps, job::CudaGraphs graphs) {
  Steps training(workload, options_of(workload, graphs), device, Transport::automatic);
  training.run(kWarmUp);
  Speed speed;
  for (int i = 0; i < kWindows; ++i) speed.measure(training, steps, workload.batch);
  const bool is_wanted = graphs == job::CudaGraphs::automatic;
  print(workload, !is_wanted ? "eager" : training.has_used_graph() ? "graph" : "graph (not captured)", speed);
}

// Alone and with the Reducer, in turns.
void bench_reducer(const Workload& workload, at::Device device, int steps, job::CudaGraphs graphs) {
  Steps alone(workload, options_of(workload, graphs), device, Transport::automatic);
  Steps reduced(workload, options_of(workload, graphs), device, Transport::nccl);
  alone.run(kWarmUp);
  reduced.run(kWarmUp);
  Speed without, with;
  for (int i = 0; i < kWindows; ++i) {
    without.measure(alone, steps, workload.batch);
    with.measure(reduced, steps, workload.batch);
  }
  const std::string mode = graphs == job::CudaGraphs::automatic ? "nccl-graph" : "nccl";
  print(workload, "beside " + mode, without);
  print(workload, mode, with);
}

void bench(const Workload& workload, at::Device device, int steps, std::string_view mode) {
  const StreamScope stream(new_stream(device));
  const bool is_graph = mode == "graph" || mode == "nccl-graph";
  const job::CudaGraphs graphs = is_graph ? job::CudaGraphs::automatic : job::CudaGraphs::never;
  mode.starts_with("nccl") ? bench_reducer(workload, device, steps, graphs)
                           : bench_alone(workload, device, steps, graphs);
}

}  // namespace

int main(int argc, char** argv) {
  at::Device device(at::kCUDA, 0);
  int steps = 40;
  std::string modes = "eager,graph,nccl,nccl-graph";
  std::vector<std::string_view> names;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--device" && i + 1 < argc) {
      device = at::Device(argv[++i]);
    } else if (word == "--steps" && i + 1 < argc) {
      steps = std::atoi(argv[++i]);
    } else if (word == "--modes" && i + 1 < argc) {
      modes = argv[++i];
    } else {
      names.push_back(word);
    }
  }
  if (device.is_cpu()) {
    modes = "eager";
  } else {
    const VisibleGpus gpus = visible_gpus();
    if (gpus.count == 0) fail(gpus.problem);
  }
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(kWorkloads, name, &Workload::name);
    if (found == kWorkloads.end()) fail(invalid("'{}': no such workload", name));
    job::TrainOptions train = options_of(*found, job::CudaGraphs::never);
    train.tf32 = false;
    configure_numerics(train);
    for (const std::string_view mode : split(modes, ',')) bench(*found, device, steps, mode);
  }
  std::fflush(nullptr);
  std::_Exit(0);
}
