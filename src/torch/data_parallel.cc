#include "torch/data_parallel.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "base/stopwatch.h"
#include "torch/c10d_internal.h"

namespace stoker::torch {

namespace {

// As PyTorch: what is copied at once when ranks take over rank 0's values.
constexpr std::size_t kCopyBytes = std::size_t{250} << 20;

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& item : named) tensors.push_back(item.tensor);
  return tensors;
}

}  // namespace

// Destroyed from the last member to the first: c10d wants the logger gone before the reducer.
struct DataParallel::Engine {
  ProcessGroup& group;
  const DataParallelOptions options;
  const std::vector<at::Tensor> parameters;
  const std::vector<at::Tensor> buffers;
  // Shared with the reducer's hooks, as c10d demands.
  std::shared_ptr<c10d::Reducer> reducer;  ///< null in a world of one
  std::shared_ptr<c10d::Logger> logger;  ///< must exist: the reducer follows its weak pointer without looking
  at::Tensor packed;                     ///< all buffers' bytes, one after the other
  bool sync = true;
  bool takes_buffers = true;  ///< in the next forward pass: as in PyTorch, not after one without sync
  double waited_s = 0;

  void copy_from_first(const std::vector<at::Tensor>& tensors) {
    if (!tensors.empty()) c10d::broadcast_coalesced(group.objects()->group, tensors, kCopyBytes, 0);
  }

  // Rank 0's bytes in one piece and one collective, whatever the types: PyTorch needs one per type and a
  // dozen tensor operations for the same result. The bytes are put in behind autograd's back, as there,
  // because an earlier pass's graph may still hold the buffers.
  void take_buffers() {
    if (buffers.empty()) return;
    auto* bytes = static_cast<std::byte*>(packed.data_ptr());
    const bool gives = group.rank().value == 0;
    if (gives)
      copy_packed(
          [&](void* buffer, std::size_t at, std::size_t size) { std::memcpy(bytes + at, buffer, size); });
    std::vector<at::Tensor> tensors{packed};
    group.objects()->group->broadcast(tensors)->wait();
    if (!gives)
      copy_packed(
          [&](void* buffer, std::size_t at, std::size_t size) { std::memcpy(buffer, bytes + at, size); });
  }

  template <typename Copy>
  void copy_packed(Copy copy) {
    std::size_t at = 0;
    for (const at::Tensor& buffer : buffers) {
      copy(buffer.data_ptr(), at, buffer.nbytes());
      at += buffer.nbytes();
    }
  }

  // The first assignment of parameters to buckets. It is replaced after the first backward pass by one in the
  // order gradients arrive, except with Unused::search: until then one bucket holds everything, as in
  // PyTorch.
  std::vector<std::vector<std::size_t>> first_buckets() const {
    std::vector<std::size_t> limits{std::numeric_limits<std::int64_t>::max()};
    if (options.unused == Unused::search) limits = {options.first_bucket.value, options.bucket.value};
    auto [indices, used_limits] = c10d::compute_bucket_assignment_by_size(
        parameters, limits, std::vector<bool>(parameters.size(), false));
    std::reverse(indices.begin(), indices.end());
    return indices;
  }

  void start(const NamedTensors& named) {
    const auto& process_group = group.objects()->group;
    c10d::verify_params_across_processes(process_group, parameters, std::nullopt);
    std::int64_t packed_bytes = 0;
    for (const at::Tensor& buffer : buffers) {
      TORCH_CHECK(buffer.is_cpu() && buffer.is_contiguous(),
                  "buffers must be contiguous and in the CPU's memory");
      packed_bytes += static_cast<std::int64_t>(buffer.nbytes());
    }
    packed = at::empty({packed_bytes}, at::kByte);
    std::vector<at::Tensor> all = parameters;
    all.insert(all.end(), buffers.begin(), buffers.end());
    for (at::Tensor& tensor : all) tensor = tensor.detach();
    copy_from_first(all);

    std::unordered_map<std::size_t, std::string> names;
    for (std::size_t i = 0; i < named.size(); ++i) names.emplace(i, named[i].name);
    reducer = std::make_shared<c10d::Reducer>(
        parameters, first_buckets(), process_group, std::vector<bool>(parameters.size(), false),
        static_cast<std::int64_t>(options.bucket.value), options.unused == Unused::search,
        options.gradients == Gradients::bucketed, std::move(names),
        static_cast<std::int64_t>(options.first_bucket.value), /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, std::vector<std::int64_t>{});
    logger = std::make_shared<c10d::Logger>(reducer);
    reducer->set_logger(logger);
    logger->set_construction_data_and_log("stoker", {}, -1, options.buffers == Buffers::from_first, false,
                                          false);
  }
};

DataParallel::DataParallel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
DataParallel::~DataParallel() = default;

Result<std::unique_ptr<DataParallel>> DataParallel::wrap(ProcessGroup& group, NamedTensors parameters,
                                                         NamedTensors buffers,
                                                         const DataParallelOptions& options) {
  auto engine = std::unique_ptr<Engine>(
      new Engine{group, options, tensors_of(parameters), tensors_of(buffers), nullptr, nullptr});
  if (group.world_size().value > 1) {
    try {
      engine->start(parameters);
    } catch (const std::exception& error) {
      return group.explain("comparing the model between ranks", error);
    }
  }
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(engine)));
}

Status DataParallel::before_forward() {
  Engine& engine = *engine_;
  if (!engine.reducer) return {};
  try {
    if (engine.sync) {
      engine.logger->set_runtime_stats_and_log();
      engine.reducer->prepare_for_forward();
    }
    const Stopwatch watch;
    engine.reducer->rebuild_buckets();
    if (engine.options.buffers == Buffers::from_first && engine.takes_buffers) engine.take_buffers();
    engine.waited_s += watch.seconds();
  } catch (const std::exception& error) {
    return engine.group.explain("taking rank 0's buffers", error);
  }
  return {};
}

Status DataParallel::take_buffers() {
  if (!engine_->reducer) return {};
  try {
    engine_->take_buffers();
  } catch (const std::exception& error) {
    return engine_->group.explain("taking rank 0's buffers", error);
  }
  return {};
}

Status DataParallel::after_forward(const at::Tensor& output) {
  Engine& engine = *engine_;
  engine.takes_buffers = engine.sync;
  if (!engine.reducer || !engine.sync) return {};
  return caught(Code::internal, "forward pass", [&] {
    std::vector<at::Tensor> outputs;
    if (engine.options.unused == Unused::search) outputs.push_back(output);
    engine.reducer->prepare_for_backward(outputs);
  });
}

Status DataParallel::backward(const at::Tensor& loss) {
  Engine& engine = *engine_;
  const double started_s = monotonic_s();
  try {
    loss.backward();
  } catch (const std::exception& error) {
    return engine.group.explain("averaging gradients", error);
  }
  if (engine.reducer && engine.sync) {
    // The last bucket leaves when the last gradient is ready; what comes after that is waiting.
    const double last_issued_s = engine.group.traffic().last_issued_s;
    if (last_issued_s > started_s) engine.waited_s += monotonic_s() - last_issued_s;
  }
  return {};
}

DataParallel::NoSync::NoSync(DataParallel& parallel) : parallel_(parallel), before_(parallel.engine_->sync) {
  parallel_.engine_->sync = false;
}
DataParallel::NoSync::~NoSync() { parallel_.engine_->sync = before_; }

void DataParallel::zero_grad() {
  for (const at::Tensor& parameter : engine_->parameters) {
    if (parameter.mutable_grad().defined()) parameter.mutable_grad().reset();
  }
}

double DataParallel::waited_s() const { return engine_->waited_s; }

std::vector<std::int64_t> DataParallel::bucket_bytes() const {
  return engine_->logger ? engine_->logger->get_bucket_sizes() : std::vector<std::int64_t>{};
}

}  // namespace stoker::torch
