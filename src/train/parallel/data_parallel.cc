#include "stoker/data_parallel.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "base/stopwatch.h"
#include "train/comm/c10d_internal.h"
#include "train/device/cuda_part.h"
#include "train/parallel/model_check.h"

namespace stoker::train {

namespace {

// As PyTorch: bucket size for the initial broadcast.
constexpr std::size_t kCopyBytes = std::size_t{250} << 20;

bool is_capturing() { return cuda_part() != nullptr && cuda_part()->is_capturing(); }

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& item : named) tensors.push_back(item.tensor);
  return tensors;
}

// PyTorch's bf16_compress_hook: round, divide by the number of ranks, sum, and widen.
class BFloat16Hook final : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor wide = bucket.getBuffer();
    std::vector<at::Tensor> narrow{wide.to(at::kBFloat16).div_(state_->getSize())};
    return state_->allreduce(narrow)->getFuture()->then(
        [wide](c10::ivalue::Future& sum) {
          wide.copy_(sum.value().toTensorList().get(0));
          return c10::IValue(std::vector<at::Tensor>{wide});
        },
        c10::ListType::create(c10::TensorType::get()));
  }
};

// With a static graph the reducer collects the used parameters in the first backward pass, and all-reduces
// after it. This node, the first one of the pass, queues the callback.
struct EndOfFirstPass : ::torch::autograd::Function<EndOfFirstPass> {
  static at::Tensor forward(::torch::autograd::AutogradContext* context, const at::Tensor& output,
                            const std::shared_ptr<c10d::Reducer>& reducer) {
    // The reducer and DataParallel outlive the pass.
    context->saved_data["reducer"] = reinterpret_cast<std::int64_t>(reducer.get());
    return output.clone();
  }
  static ::torch::autograd::variable_list backward(::torch::autograd::AutogradContext* context,
                                                   const ::torch::autograd::variable_list& gradients) {
    auto* reducer = reinterpret_cast<c10d::Reducer*>(context->saved_data["reducer"].toInt());
    ::torch::autograd::Engine::get_default_engine().queue_callback(
        [reducer] { reducer->delay_all_reduce(); });
    return {gradients[0], at::Tensor()};
  }
};

}  // namespace

// Members are destroyed from last to first: c10d requires the logger to be destroyed before the reducer.
struct DataParallel::Engine {
  ProcessGroup& group;
  const DataParallelOptions options;
  const NamedTensors named;
  const std::vector<at::Tensor> parameters;
  const std::vector<at::Tensor> buffers;         ///< on the host
  const std::vector<at::Tensor> device_buffers;  ///< on GPUs
  // c10d shares it with its hooks.
  std::shared_ptr<c10d::Reducer> reducer;  ///< null for a world size of one
  std::shared_ptr<c10d::Logger> logger;    ///< required: the reducer dereferences its weak pointer unchecked
  at::Tensor packed;                       ///< bytes of all buffers on the host, concatenated
  bool sync = true;
  bool is_first_pass = true;
  int last_source_rank = 0;   ///< source of the buffers in the latest step
  bool syncs_buffers = true;  ///< in the next forward pass; as in PyTorch, not after a pass without sync
  double waited_s = 0;

  void broadcast_model(int source_rank) {
    std::vector<at::Tensor> all = parameters;
    all.insert(all.end(), buffers.begin(), buffers.end());
    all.insert(all.end(), device_buffers.begin(), device_buffers.end());
    for (at::Tensor& tensor : all) tensor = tensor.detach();
    broadcast(all, source_rank);
  }

  // Tensors of one device at a time.
  void broadcast(const std::vector<at::Tensor>& tensors, int source_rank) const {
    for (const bool is_on_cpu : {true, false}) {
      std::vector<at::Tensor> some;
      std::ranges::copy_if(tensors, std::back_inserter(some),
                           [&](const at::Tensor& tensor) { return tensor.is_cpu() == is_on_cpu; });
      if (!some.empty()) c10d::broadcast_coalesced(group.objects()->group, some, kCopyBytes, source_rank);
    }
  }

  // Announces whether this rank makes another step. Returns the lowest active rank, -1 if none is active.
  int lowest_active(bool is_active) {
    std::vector<at::Tensor> active{at::zeros({group.world_size().value}, at::kInt)};
    active[0][group.rank().value] = is_active ? 1 : 0;
    group.objects()->group->allreduce(active)->wait();
    const auto* flags = active[0].const_data_ptr<int>();
    const auto* end = flags + group.world_size().value;
    const auto* first = std::find_if(flags, end, [](int flag) { return flag != 0; });
    return first == end ? -1 : static_cast<int>(first - flags);
  }

  // Runs the collectives of the peers' step with zero gradients.
  void shadow_step(int source_rank) {
    reducer->rebuild_buckets();
    if (options.buffer_sync == BufferSync::broadcast) sync_buffers(source_rank);
    for (c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/true)) {
      reducer->run_comm_hook(bucket)->waitAndThrow();
    }
    if (finds_unused()) {
      std::vector<at::Tensor> used{reducer->get_local_used_map_on_device()};
      group.objects()->group->allreduce(used)->wait();
    }
    reducer->push_rebuilt_params_for_all_indices();
  }

  void sync_buffers(int source_rank = 0) {
    sync_device_buffers(source_rank);
    sync_host_buffers(source_rank);
  }

  // One broadcast for each type. The source, which c10d::broadcast_coalesced() would let copy each buffer to
  // itself, only packs them.
  void sync_device_buffers(int source_rank) {
    const at::NoGradGuard no_grad;
    std::map<at::ScalarType, std::vector<at::Tensor>> of_type;
    for (const at::Tensor& buffer : device_buffers) of_type[buffer.scalar_type()].push_back(buffer.detach());
    for (const auto& [type, some] : of_type) {
      std::vector<at::Tensor> flat, packed_together(1);
      std::vector<std::int64_t> sizes;
      for (const at::Tensor& buffer : some) {
        flat.push_back(buffer.flatten());
        sizes.push_back(buffer.numel());
      }
      packed_together[0] = at::cat(flat);
      c10d::BroadcastOptions from;
      from.rootRank = source_rank;
      group.objects()->group->broadcast(packed_together, from)->wait();
      if (group.rank().value == source_rank) continue;
      const std::vector<at::Tensor> parts = packed_together[0].split_with_sizes(sizes);
      for (std::size_t i = 0; i < some.size(); ++i) flat[i] = parts[i].view_as(some[i]);
      at::_foreach_copy_(some, flat);
    }
  }

  // Broadcasts the source rank's buffers in one collective for all types. PyTorch needs one per type and a
  // dozen tensor operations for the same result. The copy bypasses autograd, as in PyTorch, because the graph
  // of an earlier pass may still hold the buffers.
  void sync_host_buffers(int source_rank) {
    if (buffers.empty()) return;
    auto* bytes = static_cast<std::byte*>(packed.data_ptr());
    const bool is_source = group.rank().value == source_rank;
    if (is_source)
      copy_packed(
          [&](void* buffer, std::size_t at, std::size_t size) { std::memcpy(bytes + at, buffer, size); });
    std::vector<at::Tensor> tensors{packed};
    c10d::BroadcastOptions from;
    from.rootRank = source_rank;
    group.objects()->group->broadcast(tensors, from)->wait();
    if (!is_source)
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

  // The initial assignment of parameters to buckets. After the first backward pass the reducer rebuilds it in
  // the order in which gradients arrive, except with UnusedParameters::find. Until then one bucket holds all
  // parameters, as in PyTorch.
  std::vector<std::vector<std::size_t>> first_buckets() const {
    std::vector<std::size_t> limits{std::numeric_limits<std::int64_t>::max()};
    if (finds_unused()) limits = {options.first_bucket.value, options.bucket.value};
    auto [indices, used_limits] = c10d::compute_bucket_assignment_by_size(
        parameters, limits, std::vector<bool>(parameters.size(), false));
    std::reverse(indices.begin(), indices.end());
    return indices;
  }

  void start() {
    const auto& process_group = group.objects()->group;
    std::int64_t packed_bytes = 0;
    for (const at::Tensor& buffer : buffers) {
      TORCH_CHECK(buffer.is_contiguous(), "buffers on the host must be contiguous");
      packed_bytes += static_cast<std::int64_t>(buffer.nbytes());
    }
    packed = at::empty({packed_bytes}, at::kByte);
    broadcast_model(0);

    std::unordered_map<std::size_t, std::string> names;
    for (std::size_t i = 0; i < named.size(); ++i) names.emplace(i, named[i].name);
    reducer = std::make_shared<c10d::Reducer>(
        parameters, first_buckets(), process_group, std::vector<bool>(parameters.size(), false),
        static_cast<std::int64_t>(options.bucket.value), options.unused_parameters == UnusedParameters::find,
        options.gradient_storage == GradientStorage::bucket_view, std::move(names),
        static_cast<std::int64_t>(options.first_bucket.value), /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, std::vector<std::int64_t>{});
    logger = std::make_shared<c10d::Logger>(reducer);
    reducer->set_logger(logger);
    const bool is_fixed = options.graph == Graph::static_graph;
    logger->set_construction_data_and_log("stoker", {}, -1, options.buffer_sync == BufferSync::broadcast,
                                          options.batch_norm_sync == BatchNormSync::all_ranks, is_fixed);
    if (is_fixed) reducer->set_static_graph();
    if (options.compression == Compression::float16) {
      reducer->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
    } else if (options.compression == Compression::bfloat16) {
      reducer->register_comm_hook(std::make_unique<BFloat16Hook>(process_group));
    }
  }

  // A rank with an unused parameter never sends its bucket. The peers wait until it publishes that failure.
  Status explain_backward(const std::exception& error) const {
    const std::vector<std::string> missing = names_without_gradient(error.what(), named);
    const Status plain = group.explain("averaging gradients", error);
    if (missing.empty() && plain.code() != Code::invalid) return plain;
    const Status reason = missing_gradient_error(group, missing);
    if (reason.ok()) return plain;
    return Status(reason).with_context(format("rank {}: averaging gradients", group.rank()));
  }

  bool finds_unused() const {
    return options.unused_parameters == UnusedParameters::find && options.graph != Graph::static_graph;
  }
};

DataParallel::DataParallel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
DataParallel::~DataParallel() = default;

Result<std::unique_ptr<DataParallel>> DataParallel::wrap(ProcessGroup& group, NamedTensors parameters,
                                                         NamedTensors buffers,
                                                         const DataParallelOptions& options) {
  std::vector<at::Tensor> host_buffers, device_buffers;
  for (const at::Tensor& buffer : tensors_of(buffers))
    (buffer.is_cpu() ? host_buffers : device_buffers).push_back(buffer);
  auto engine = std::unique_ptr<Engine>(new Engine{group, options, parameters, tensors_of(parameters),
                                                   std::move(host_buffers), std::move(device_buffers),
                                                   nullptr, nullptr});
  if (group.objects()->group) {
    constexpr std::string_view kSubject = "comparing the model between ranks";
    const Status same = compare_models(group, parameters, buffers);
    if (same.code() == Code::invalid) {
      return Status(same).with_context(format("rank {}: {}", group.rank(), kSubject));
    }
    STOKER_RETURN_IF_ERROR(same);
    try {
      engine->start();
    } catch (const std::exception& error) {
      return group.explain("taking rank 0's model", error);
    }
  }
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(engine)));
}

ProcessGroup* DataParallel::batch_norm_group() const {
  const bool is_wanted = engine_->options.batch_norm_sync == BatchNormSync::all_ranks && engine_->reducer;
  return is_wanted ? &engine_->group : nullptr;
}

Status DataParallel::before_forward() {
  Engine& engine = *engine_;
  if (!engine.reducer) return {};
  const bool is_uneven = engine.options.inputs == Inputs::uneven;
  if (is_uneven && !engine.sync) {
    return invalid("rank {}: steps without sync cannot be combined with uneven inputs", engine.group.rank());
  }
  try {
    if (engine.sync) {
      // It asks how long earlier passes took, which cannot be captured.
      if (!is_capturing()) engine.logger->set_runtime_stats_and_log();
      engine.reducer->prepare_for_forward();
    }
    const Stopwatch watch;
    const int source_rank = is_uneven ? engine.lowest_active(true) : 0;
    engine.last_source_rank = source_rank;
    engine.reducer->rebuild_buckets();
    if (engine.options.buffer_sync == BufferSync::broadcast && engine.syncs_buffers)
      engine.sync_buffers(source_rank);
    engine.waited_s += watch.seconds();
  } catch (const std::exception& error) {
    return engine.group.explain("taking rank 0's buffers", error);
  }
  return {};
}

Status DataParallel::join() {
  Engine& engine = *engine_;
  if (engine.options.inputs != Inputs::uneven) {
    return invalid("rank {}: join() requires DataParallelOptions with inputs = Inputs::uneven",
                   engine.group.rank());
  }
  if (!engine.reducer) return {};
  try {
    // The source rank of the last step has the latest model.
    int latest = engine.last_source_rank;
    for (int source_rank = engine.lowest_active(false); source_rank >= 0;
         source_rank = engine.lowest_active(false)) {
      latest = source_rank;
      engine.shadow_step(source_rank);
    }
    engine.broadcast_model(latest);
  } catch (const std::exception& error) {
    return engine.group.explain("joining the other ranks' steps", error);
  }
  return {};
}

Status DataParallel::sync_buffers() {
  if (!engine_->reducer) return {};
  try {
    engine_->sync_buffers();
  } catch (const std::exception& error) {
    return engine_->group.explain("taking rank 0's buffers", error);
  }
  return {};
}

Result<at::Tensor> DataParallel::after_forward(at::Tensor output) {
  Engine& engine = *engine_;
  engine.syncs_buffers = engine.sync;
  if (!engine.reducer || !engine.sync) return output;
  return catch_exceptions(Code::internal, "forward pass", [&]() -> Result<at::Tensor> {
    std::vector<at::Tensor> outputs;
    if (engine.finds_unused()) outputs.push_back(output);
    engine.reducer->prepare_for_backward(outputs);
    const bool is_first = std::exchange(engine.is_first_pass, false);
    if (engine.options.graph != Graph::static_graph || !is_first) return output;
    return EndOfFirstPass::apply(output, engine.reducer);
  });
}

Status DataParallel::backward(const at::Tensor& loss) {
  Engine& engine = *engine_;
  const double started_s = monotonic_s();
  try {
    loss.backward();
    if (engine.reducer && engine.sync) engine.reducer->check_finalized();
  } catch (const std::exception& error) {
    return engine.explain_backward(error);
  }
  const bool runs_on_cpu = engine.parameters.empty() || engine.parameters.front().is_cpu();
  if (engine.reducer && engine.sync && runs_on_cpu) {
    // The last bucket is sent when the last gradient is ready. Time after that is spent waiting.
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

bool DataParallel::has_peers() const { return engine_->reducer != nullptr; }

double DataParallel::waited_s() const { return engine_->waited_s; }

std::vector<std::int64_t> DataParallel::bucket_bytes() const {
  return engine_->logger ? engine_->logger->get_bucket_sizes() : std::vector<std::int64_t>{};
}

}  // namespace stoker::train
