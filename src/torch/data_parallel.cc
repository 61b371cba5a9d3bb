#include "torch/data_parallel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "base/stopwatch.h"
#include "torch/c10d_internal.h"
#include "torch/parallel/model_check.h"

namespace stoker::torch {

namespace {

// As PyTorch: what is copied at once when ranks take over rank 0's values.
constexpr std::size_t kCopyBytes = std::size_t{250} << 20;

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& item : named) tensors.push_back(item.tensor);
  return tensors;
}

// PyTorch's bf16_compress_hook: rounded, divided by the number of ranks, summed, and widened again.
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

// With a fixed graph the reducer learns in the first backward pass which parameters take part, and averages
// when that is over. Somebody must say when: this node, the first one of the pass.
struct EndOfFirstPass : ::torch::autograd::Function<EndOfFirstPass> {
  static at::Tensor forward(::torch::autograd::AutogradContext* context, const at::Tensor& output,
                            const std::shared_ptr<c10d::Reducer>& reducer) {
    // The reducer outlives the pass, as DataParallel does.
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

// Destroyed from the last member to the first: c10d wants the logger gone before the reducer.
struct DataParallel::Engine {
  ProcessGroup& group;
  const DataParallelOptions options;
  const NamedTensors named;
  const std::vector<at::Tensor> parameters;
  const std::vector<at::Tensor> buffers;
  // Shared with the reducer's hooks, as c10d demands.
  std::shared_ptr<c10d::Reducer> reducer;  ///< null in a world of one
  std::shared_ptr<c10d::Logger> logger;  ///< must exist: the reducer follows its weak pointer without looking
  at::Tensor packed;                     ///< all buffers' bytes, one after the other
  bool sync = true;
  bool is_first_pass = true;
  int latest_giver = 0;       ///< whose buffers the latest step took
  bool takes_buffers = true;  ///< in the next forward pass: as in PyTorch, not after one without sync
  double waited_s = 0;

  void copy_model_from(int giver) {
    std::vector<at::Tensor> all = parameters;
    all.insert(all.end(), buffers.begin(), buffers.end());
    for (at::Tensor& tensor : all) tensor = tensor.detach();
    if (!all.empty()) c10d::broadcast_coalesced(group.objects()->group, all, kCopyBytes, giver);
  }

  // Says whether this rank makes another step; the lowest one that does, -1 when none does.
  int lowest_active(bool is_active) {
    std::vector<at::Tensor> active{at::zeros({group.world_size().value}, at::kInt)};
    active[0][group.rank().value] = is_active ? 1 : 0;
    group.objects()->group->allreduce(active)->wait();
    const auto* flags = active[0].const_data_ptr<int>();
    const auto* end = flags + group.world_size().value;
    const auto* first = std::find_if(flags, end, [](int flag) { return flag != 0; });
    return first == end ? -1 : static_cast<int>(first - flags);
  }

  // The collectives of a step of other ranks, with nothing of this one.
  void accompany_step(int giver) {
    reducer->rebuild_buckets();
    if (options.buffers == Buffers::from_first) take_buffers(giver);
    for (c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/true)) {
      reducer->run_comm_hook(bucket)->waitAndThrow();
    }
    if (searches_unused()) {
      std::vector<at::Tensor> used{reducer->get_local_used_map_on_device()};
      group.objects()->group->allreduce(used)->wait();
    }
    reducer->push_rebuilt_params_for_all_indices();
  }

  // Rank 0's bytes in one piece and one collective, whatever the types: PyTorch needs one per type and a
  // dozen tensor operations for the same result. The bytes are put in behind autograd's back, as there,
  // because an earlier pass's graph may still hold the buffers.
  void take_buffers(int giver = 0) {
    if (buffers.empty()) return;
    auto* bytes = static_cast<std::byte*>(packed.data_ptr());
    const bool gives = group.rank().value == giver;
    if (gives)
      copy_packed(
          [&](void* buffer, std::size_t at, std::size_t size) { std::memcpy(bytes + at, buffer, size); });
    std::vector<at::Tensor> tensors{packed};
    c10d::BroadcastOptions from;
    from.rootRank = giver;
    group.objects()->group->broadcast(tensors, from)->wait();
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
    if (searches_unused()) limits = {options.first_bucket.value, options.bucket.value};
    auto [indices, used_limits] = c10d::compute_bucket_assignment_by_size(
        parameters, limits, std::vector<bool>(parameters.size(), false));
    std::reverse(indices.begin(), indices.end());
    return indices;
  }

  void start() {
    const auto& process_group = group.objects()->group;
    std::int64_t packed_bytes = 0;
    for (const at::Tensor& buffer : buffers) {
      TORCH_CHECK(buffer.is_cpu() && buffer.is_contiguous(),
                  "buffers must be contiguous and in the CPU's memory");
      packed_bytes += static_cast<std::int64_t>(buffer.nbytes());
    }
    packed = at::empty({packed_bytes}, at::kByte);
    copy_model_from(0);

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
    const bool is_fixed = options.graph == Graph::fixed;
    logger->set_construction_data_and_log("stoker", {}, -1, options.buffers == Buffers::from_first,
                                          options.statistics == Statistics::of_all_ranks, is_fixed);
    if (is_fixed) reducer->set_static_graph();
    if (options.compression == Compression::float16) {
      reducer->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
    } else if (options.compression == Compression::bfloat16) {
      reducer->register_comm_hook(std::make_unique<BFloat16Hook>(process_group));
    }
  }

  // A rank on which a parameter took no part never sends that bucket; the others wait for it until it says
  // so.
  Status explain_backward(const std::exception& error) const {
    const std::vector<std::string> missing = names_without_gradient(error.what(), named);
    const Status plain = group.explain("averaging gradients", error);
    if (missing.empty() && plain.code() != Code::invalid) return plain;
    const Status told = told_without_gradient(group, missing);
    if (told.ok()) return plain;
    return Status(told).with_context(format("rank {}: averaging gradients", group.rank()));
  }

  bool searches_unused() const { return options.unused == Unused::search && options.graph != Graph::fixed; }
};

DataParallel::DataParallel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
DataParallel::~DataParallel() = default;

Result<std::unique_ptr<DataParallel>> DataParallel::wrap(ProcessGroup& group, NamedTensors parameters,
                                                         NamedTensors buffers,
                                                         const DataParallelOptions& options) {
  auto engine = std::unique_ptr<Engine>(
      new Engine{group, options, parameters, tensors_of(parameters), tensors_of(buffers), nullptr, nullptr});
  if (group.world_size().value > 1) {
    constexpr std::string_view kSubject = "comparing the model between ranks";
    const Status same = compare_models(group, parameters, buffers);
    if (same.code() == Code::invalid) {
      return Status(same).with_context(format("rank {}: {}", group.rank(), kSubject));
    }
    RETURN_IF_ERROR(same);
    try {
      engine->start();
    } catch (const std::exception& error) {
      return group.explain("taking rank 0's model", error);
    }
  }
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(engine)));
}

ProcessGroup* DataParallel::batch_norm_group() const {
  const bool is_wanted = engine_->options.statistics == Statistics::of_all_ranks && engine_->reducer;
  return is_wanted ? &engine_->group : nullptr;
}

Status DataParallel::before_forward() {
  Engine& engine = *engine_;
  if (!engine.reducer) return {};
  const bool is_uneven = engine.options.inputs == Inputs::uneven;
  if (is_uneven && !engine.sync) {
    return invalid("rank {}: steps without sync and uneven inputs do not go together", engine.group.rank());
  }
  try {
    if (engine.sync) {
      engine.logger->set_runtime_stats_and_log();
      engine.reducer->prepare_for_forward();
    }
    const Stopwatch watch;
    const int giver = is_uneven ? engine.lowest_active(true) : 0;
    engine.latest_giver = giver;
    engine.reducer->rebuild_buckets();
    if (engine.options.buffers == Buffers::from_first && engine.takes_buffers) engine.take_buffers(giver);
    engine.waited_s += watch.seconds();
  } catch (const std::exception& error) {
    return engine.group.explain("taking rank 0's buffers", error);
  }
  return {};
}

Status DataParallel::join() {
  Engine& engine = *engine_;
  if (engine.options.inputs != Inputs::uneven) {
    return invalid("rank {}: joining is for DataParallelOptions with inputs = Inputs::uneven",
                   engine.group.rank());
  }
  if (!engine.reducer) return {};
  try {
    // Whoever made the last step has the latest model.
    int latest = engine.latest_giver;
    for (int giver = engine.lowest_active(false); giver >= 0; giver = engine.lowest_active(false)) {
      latest = giver;
      engine.accompany_step(giver);
    }
    engine.copy_model_from(latest);
  } catch (const std::exception& error) {
    return engine.group.explain("accompanying other ranks' steps", error);
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

Result<at::Tensor> DataParallel::after_forward(at::Tensor output) {
  Engine& engine = *engine_;
  engine.takes_buffers = engine.sync;
  if (!engine.reducer || !engine.sync) return output;
  return caught(Code::internal, "forward pass", [&]() -> Result<at::Tensor> {
    std::vector<at::Tensor> outputs;
    if (engine.searches_unused()) outputs.push_back(output);
    engine.reducer->prepare_for_backward(outputs);
    const bool is_first = std::exchange(engine.is_first_pass, false);
    if (engine.options.graph != Graph::fixed || !is_first) return output;
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
