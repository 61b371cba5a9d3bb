// One rank of a custom training loop: rank, data, checkpoints, metrics. Start here to use Stoker as a library
// (examples/cpp/train.cc). `stoker run`, torchrun and srun set the rank in the environment. Without them the
// world size is one. One object belongs to one thread.
//
//   STOKER_ASSIGN_OR_RETURN(session, Session::open({.name = "mine", .checkpoints = "checkpoints"}));
//   STOKER_ASSIGN_OR_RETURN(parallel, session->begin(model_state(net), &optimizer));
//   STOKER_ASSIGN_OR_RETURN(loader, session->make_loader(dataset, options));
//   while (loader->state().epoch < epochs) {
//     STOKER_ASSIGN_OR_RETURN(batch, loader->next(Deadline::after(std::chrono::minutes(5))));
//     if (!batch) continue;  // end of the epoch
//     ... one step of `parallel` and the optimizer ...
//     STOKER_ASSIGN_OR_RETURN(should_continue, session->record_step(*batch, {.loss = loss}));
//     if (!should_continue) break;
//   }
//   return session->finish();
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "stoker/data_parallel.h"
#include "stoker/dataset.h"
#include "stoker/loader.h"
#include "stoker/model_state.h"
#include "stoker/optimizer.h"
#include "stoker/process_group.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::train {

struct TrainingSessionOptions {
  std::string name = "training";  ///< name of the run, unless a launcher sets it
  Path checkpoints;               ///< checkpoint folder, unless a launcher sets it; empty: no checkpoints
  std::uint64_t save_every = 0;   ///< steps between checkpoints; 0: only on save() and when stopped
  std::uint32_t keep_last = 3;    ///< number of most recent checkpoints to keep
  /// Until all ranks have joined, else the missing one is named.
  Duration start_timeout = std::chrono::minutes(2);
  Duration communication_timeout = std::chrono::minutes(10);  ///< of a collective
};

/// Metrics of one step, for metrics-<rank>.csv. NaN: unknown.
struct StepMetrics {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double lr = std::numeric_limits<double>::quiet_NaN();
  double top1 = std::numeric_limits<double>::quiet_NaN();  ///< share of the samples
};

/// The tensors of a torch::nn::Module, shared with it.
template <typename Module>
ModelState model_state(const Module& module) {
  ModelState state;
  state.parameters = named_tensors(module.named_parameters());
  state.buffers = named_tensors(module.named_buffers());
  state.all = state.parameters;
  state.all.insert(state.all.end(), state.buffers.begin(), state.buffers.end());
  return state;
}

class Session {
 public:
  /// Reads the environment and connects to the peers. Collective.
  static Result<std::unique_ptr<Session>> open(const TrainingSessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Rank rank() const;
  WorldSize world_size() const;
  ProcessGroup& group();
  /// Where this rank's model belongs: the first GPU of this rank, number LOCAL_RANK with one GPU per rank
  /// (docs/environment.md), or the CPU without a GPU or a torch for CUDA. The caller moves the model there
  /// before begin().
  at::Device device() const;

  /// Restores the model and optimizer from a checkpoint, or broadcasts rank 0's model. The checkpoint is
  /// STOKER_RESUME, or without a launcher the newest one in `checkpoints` that all ranks can restore. Rank 0
  /// reports skipped steps on standard error. All ranks return the same error: not_found if `checkpoints` has
  /// steps, but none is valid. `optimizer` may be null and must outlive the session; `first` are the rates
  /// of its first step. A model on a GPU uses it from now on (ProcessGroup::use_device). Collective.
  Result<std::unique_ptr<DataParallel>> begin(ModelState model, Optimizer* optimizer, const Rates& first = {},
                                              const DataParallelOptions& options = {});
  /// This rank's loader, at the position of the checkpoint. `dataset` must outlive the loader.
  Result<std::unique_ptr<loader::Loader>> make_loader(const dataset::Dataset& dataset,
                                                      loader::LoaderOptions options);

  /// A loader for one pass over all samples, each once over all ranks, in stored order: for an evaluation
  /// whose sums all ranks then add (ProcessGroup::all_reduce_sum). The last batch may have fewer samples, and
  /// a rank none at all. Order, ranks and the last batch in `options` are overwritten. `dataset` must outlive
  /// the loader.
  Result<std::unique_ptr<loader::Loader>> validation(const dataset::Dataset& dataset,
                                                     loader::LoaderOptions options) const;

  /// Total steps of all attempts.
  std::int64_t steps() const;

  /// Call it after each optimizer step. Records the step, and saves a checkpoint if one is due or if a rank
  /// has to stop (SIGTERM, SIGUSR1, SIGINT, SIGHUP, STOKER_DEADLINE near). Returns false in the latter case:
  /// leave the loop. Collective.
  Result<bool> record_step(const loader::Batch& batch, const StepMetrics& metrics);
  /// Saves a checkpoint. Collective.
  Status save();
  /// Saves the final state and blocks until all checkpoints are written. Collective.
  Status finish();
  /// Exit code of the program: 0, or 75 if record_step() returned false (docs/exit-codes.md).
  int exit_code() const;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A batch as a tensor, and its labels: images have shape N x 3 x H x W in either layout, arrays the shape in
/// which they are stored. Views of the batch on the host, which must outlive them.
at::Tensor image_tensor(loader::Batch& batch);
at::Tensor label_tensor(loader::Batch& batch);

}  // namespace stoker::train
