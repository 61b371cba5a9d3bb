// Trains one model on all ranks: the same parameters everywhere, gradients averaged while the backward pass
// runs. The engine is c10d::Reducer, the one under PyTorch's DistributedDataParallel, so gradients come out
// bit for bit as there. Used by the trainer and by C++ programs of others; works on any model that can list
// its parameters, torch::nn::Module included. One object belongs to one thread of one rank.
//
//   OK_OR_RETURN(parallel, DataParallel::wrap(group, parameters, buffers, {}));
//   for (...) {
//     parallel->zero_grad();
//     OK_OR_RETURN(logits, parallel->forward([&] { return model.forward(images); }));
//     RETURN_IF_ERROR(parallel->backward(at::cross_entropy_loss(logits, labels)));
//     optimizer.step();
//   }
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "torch/edge.h"
#include "torch/named_tensor.h"
#include "torch/parallel/sync_batch_norm.h"
#include "torch/process_group.h"

namespace stoker::torch {

enum class Buffers {
  from_first,  ///< before every forward pass each rank takes rank 0's batch-norm statistics, as PyTorch does
  own,         ///< each rank keeps its own
};
enum class Unused {
  never,   ///< every parameter takes part in every backward pass
  search,  ///< some may not: found by walking the graph after each forward pass
};
enum class Inputs {
  even,    ///< all ranks make the same number of steps
  uneven,  ///< a rank that has no more batches calls join()
};
enum class Graph {
  may_change,  ///< from step to step
  fixed,       ///< the same in every step: parameters that take no part in the first one never do
};
enum class Compression {
  none,      ///< gradients travel as they are
  float16,   ///< rounded to 16 bits on the way, as PyTorch's fp16_compress_hook
  bfloat16,  ///< as bf16_compress_hook
};
enum class Statistics {
  of_rank,       ///< batch norm in training normalizes with the rank's own batch
  of_all_ranks,  ///< with the batches of all ranks together (parallel/sync_batch_norm.h), in our models
};
enum class Gradients {
  copied,   ///< each parameter's gradient has its own memory
  bucketed  ///< gradients are views into the buffers that are sent: one copy less of the model
};

struct DataParallelOptions {
  Buffers buffers = Buffers::from_first;
  Unused unused = Unused::never;
  Inputs inputs = Inputs::even;
  Graph graph = Graph::may_change;
  Gradients gradients = Gradients::copied;
  Compression compression = Compression::none;
  Statistics statistics = Statistics::of_rank;
  ByteCount bucket{25u << 20};       ///< gradients are sent in pieces of about this size
  ByteCount first_bucket{1u << 20};  ///< the first piece is smaller, so that sending starts early
};

class DataParallel {
 public:
  /// Checks that all ranks have parameters and buffers of the same names, types and shapes, and gives every
  /// rank rank 0's values. Collective; all ranks fail alike, with the first difference. Buffers must be
  /// contiguous and in the CPU's memory. The tensors are shared with the caller's model; `group` must outlive
  /// the answer.
  static Result<std::unique_ptr<DataParallel>> wrap(ProcessGroup& group, NamedTensors parameters,
                                                    NamedTensors buffers, const DataParallelOptions& options);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Runs `body`, which computes the model's output, between what must happen before and after it.
  /// Collective.
  template <typename Body>
  Result<at::Tensor> forward(Body&& body) {
    RETURN_IF_ERROR(before_forward());
    auto output = caught(Code::internal, "forward pass", [&]() -> Result<at::Tensor> {
      const SyncBatchNorm synchronized(batch_norm_group());
      return std::forward<Body>(body)();
    });
    if (!output.ok()) return output;
    return after_forward(std::move(*output));
  }

  /// Computes the gradients and averages them over the ranks, in part at the same time. Collective while
  /// synchronizing. Parameters that took no part although Unused::never says they all do are named, with the
  /// ranks, in the same step. After a failure the group is of no more use.
  Status backward(const at::Tensor& loss);

  /// Every rank takes rank 0's buffers now: before evaluating, say. Collective.
  Status take_buffers();

  /// With Inputs::uneven, for a rank without further batches: takes part in the others' steps with gradients
  /// of zero until all ranks have come here, and then takes the model of a rank that made the last step.
  /// Averages still divide by the number of all ranks, as PyTorch's Join does unless told otherwise.
  /// Collective.
  Status join();

  /// While one lives, gradients add up on each rank and nothing is sent. Not collective.
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

  /// Drops all gradients. Use this one: libtorch's Optimizer::zero_grad() cannot detach bucketed gradients.
  void zero_grad();

  /// Seconds spent waiting for other ranks, since the start: before forward passes (buffers) and after the
  /// last gradient was ready (averages). What is sent while gradients are still computed does not count.
  double waited_s() const;
  /// Bytes of each gradient bucket, in the order they are sent.
  std::vector<std::int64_t> bucket_bytes() const;

 private:
  struct Engine;
  explicit DataParallel(std::unique_ptr<Engine> engine);
  /// Over which batch norm is synchronized; null for none.
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

}  // namespace stoker::torch
