// Data parallel training of one model: equal parameters on all ranks, gradients averaged during the backward
// pass. Based on c10d::Reducer, the engine of PyTorch's DistributedDataParallel, so gradients have the same
// bits. Used by the trainer and by C++ programs. Works with any list of parameters, for example of a
// torch::nn::Module. One object belongs to one thread of one rank.
//
//   STOKER_ASSIGN_OR_RETURN(parallel, DataParallel::wrap(group, parameters, buffers, {}));
//   for (...) {
//     parallel->zero_grad();
//     STOKER_ASSIGN_OR_RETURN(logits, parallel->forward([&] { return model.forward(images); }));
//     STOKER_RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, labels)));
//     optimizer.step();
//   }
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/choices.h"
#include "stoker/exceptions.h"
#include "stoker/model_state.h"
#include "stoker/process_group.h"
#include "stoker/status.h"
#include "stoker/sync_batch_norm.h"

namespace stoker::train {

enum class BufferSync {
  broadcast,  ///< broadcast rank 0's buffers before every forward pass (PyTorch: broadcast_buffers)
  none,       ///< each rank keeps its own buffers
};
enum class UnusedParameters {
  never,  ///< every parameter is used in every backward pass
  find,   ///< search the graph for unused parameters after each forward pass
};
enum class Inputs {
  even,    ///< all ranks make the same number of steps
  uneven,  ///< a rank without further batches calls join()
};
enum class Graph {
  dynamic_graph,  ///< the graph may change from step to step
  static_graph,   ///< the graph is the same in every step; parameters unused in the first step are never used
};
enum class BatchNormSync {
  none,       ///< batch norm uses the statistics of the rank's batch
  all_ranks,  ///< batch norm of the built-in models uses the statistics of all ranks' batches
              ///< (sync_batch_norm.h)
};
enum class GradientStorage {
  separate,    ///< each gradient has its own memory
  bucket_view  ///< gradients are views into the buckets, which saves one copy of the model
};

struct DataParallelOptions {
  BufferSync buffer_sync = BufferSync::broadcast;
  UnusedParameters unused_parameters = UnusedParameters::never;
  Inputs inputs = Inputs::even;
  Graph graph = Graph::dynamic_graph;
  GradientStorage gradient_storage = GradientStorage::separate;
  Compression compression = Compression::none;
  BatchNormSync batch_norm_sync = BatchNormSync::none;
  ByteCount bucket{25u << 20};       ///< bucket size
  ByteCount first_bucket{1u << 20};  ///< smaller, so that communication starts early
};

class DataParallel {
 public:
  /// Checks that all ranks have parameters and buffers of the same names, types and shapes, and broadcasts
  /// rank 0's values. Collective; all ranks fail with the same first difference. Buffers on
  /// the host must be contiguous. Parameters on a GPU need ProcessGroup::use_device(). Tensors are shared
  /// with the caller's model. `group` must outlive the result.
  static Result<std::unique_ptr<DataParallel>> wrap(ProcessGroup& group, NamedTensors parameters,
                                                    NamedTensors buffers, const DataParallelOptions& options);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Runs `body`, which computes the model's output, as a forward pass. Collective.
  template <typename Body>
  Result<at::Tensor> forward(Body&& body) {
    STOKER_RETURN_IF_ERROR(before_forward());
    auto output = catch_exceptions(Code::internal, "forward pass", [&]() -> Result<at::Tensor> {
      const SyncBatchNormScope synchronized(batch_norm_group());
      return std::forward<Body>(body)();
    });
    if (!output.ok()) return output;
    return after_forward(std::move(*output));
  }

  /// Computes gradients and averages them over the ranks, partly in parallel. Collective unless a NoSync
  /// exists. With UnusedParameters::never, an unused parameter is an error that names it and its ranks. The
  /// group is unusable after a failure.
  Status backward(const at::Tensor& loss);

  /// Broadcasts rank 0's buffers now, for example before an evaluation. Collective.
  Status sync_buffers();

  /// For Inputs::uneven, on a rank without further batches: joins its peers' steps with zero gradients until
  /// all ranks have called it, and then receives the model of a rank that made the last step. Averages divide
  /// by the number of all ranks, as PyTorch's Join does by default. Collective.
  Status join();

  /// While a NoSync exists, gradients accumulate locally and are not all-reduced. Not collective.
  class NoSync {
   public:
    explicit NoSync(DataParallel& parallel);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DataParallel& parallel_;
    const bool before_;
  };

  /// Resets all gradients. libtorch's Optimizer::zero_grad() cannot detach bucketed gradients.
  void zero_grad();

  /// Whether gradients are averaged with other ranks.
  bool has_peers() const;
  /// Total time waited for peers: before forward passes (buffers) and after the last gradient was ready
  /// (averages). Communication that overlaps computation does not count.
  double waited_s() const;
  /// Bytes of each gradient bucket, in the order of sending.
  std::vector<std::int64_t> bucket_bytes() const;

 private:
  struct Engine;
  explicit DataParallel(std::unique_ptr<Engine> engine);
  /// The group for synchronized batch norm; null if it is off.
  ProcessGroup* batch_norm_group() const;
  Status before_forward();
  Result<at::Tensor> after_forward(at::Tensor output);

  std::unique_ptr<Engine> engine_;
};

/// The parameters or buffers of a torch::nn::Module: named_tensors(module.named_parameters()).
template <typename OrderedDict>
NamedTensors named_tensors(const OrderedDict& items) {
  NamedTensors tensors;
  for (const auto& item : items) tensors.push_back({item.key(), item.value()});
  return tensors;
}

}  // namespace stoker::train
