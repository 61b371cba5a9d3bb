#include "train/trainer/learn/step_graph.h"

#include <ATen/ops/empty_like.h>

namespace stoker::train {

namespace {

// Steps until libtorch has allocated its workspaces and chosen its convolutions.
constexpr std::int64_t kWarmUp = 3;
// With peers: until c10d has rebuilt its buckets and stopped measuring, as PyTorch advises.
constexpr std::int64_t kWarmUpWithPeers = 11;

}  // namespace

std::string capture_obstacle(const job::TrainOptions& train, const GraphSituation& situation) {
  if (situation.device.is_cpu()) return "train.device is the CPU";
  if (train.cuda_graph == job::CudaGraphs::never) return "train.cuda_graph is never";
  if (train.deterministic) return "train.deterministic is true";
  if (train.accumulate > 1) return format("train.accumulate is {}", train.accumulate);
  if (train.mixup > 0) return "train.mixup chooses new shares in each step";
  if (train.cutmix > 0) return "train.cutmix chooses a new box in each step";
  if (train.heads > 1) return format("train.heads is {}: each step uses another one", train.heads);
  if (train.stochastic_depth > 0) return "train.stochastic_depth chooses new samples in each step";
  if (train.find_unused_parameters) return "train.find_unused_parameters is true";
  if (situation.are_gradients_staged) return "ranks share a GPU";
  return "";
}

StepGraph::StepGraph(const job::TrainOptions& train, const GraphSituation& situation)
    : is_wanted_(capture_obstacle(train, situation).empty()),
      warm_up_(situation.has_peers ? kWarmUpWithPeers : kWarmUp) {}

bool StepGraph::accepts(const BatchTensors& batch) const {
  return is_wanted_ && eager_steps_ >= warm_up_ && batch.input.sizes() == at::IntArrayRef(shape_);
}

void StepGraph::count_eager(const BatchTensors& batch) {
  if (!is_wanted_) return;
  if (shape_.empty()) shape_ = batch.input.sizes().vec();
  if (batch.input.sizes() == at::IntArrayRef(shape_)) ++eager_steps_;
}

void StepGraph::run(const BatchTensors& batch, const std::function<void(const BatchTensors&)>& body) {
  if (!graph_) memory_ = {at::empty_like(batch.input), at::empty_like(batch.labels)};
  memory_.input.copy_(batch.input, /*non_blocking=*/true);
  memory_.labels.copy_(batch.labels, /*non_blocking=*/true);
  if (!graph_) graph_ = cuda_part()->capture([&] { body(memory_); });
  graph_->replay();
}

void StepGraph::give_up() {
  is_wanted_ = false;
  graph_.reset();
  memory_ = {};
}

}  // namespace stoker::train
