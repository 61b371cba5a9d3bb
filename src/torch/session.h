// One rank of a training of your own: where it is in the world, its data, its checkpoints, its figures. Start
// here when you use Stoker as a library (examples/cpp/train.cc). Under `stoker run`, torchrun or srun the
// environment says which rank this is; without, it is a world of one. One object belongs to one thread.
//
//   OK_OR_RETURN(session, Session::open({.name = "mine", .checkpoints = "checkpoints"}));
//   OK_OR_RETURN(parallel, session->begin(model_state(net), &optimizer));
//   OK_OR_RETURN(loader, session->load(dataset, options));
//   while (loader->state().epoch < epochs) {
//     OK_OR_RETURN(batch, loader->next(Deadline::after(std::chrono::minutes(5))));
//     if (!batch) continue;  // the epoch is over
//     ... one step of `parallel` and the optimizer ...
//     OK_OR_RETURN(goes_on, session->stepped(*batch, {.loss = loss}));
//     if (!goes_on) break;
//   }
//   return session->finish();
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/strong.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "torch/data_parallel.h"
#include "torch/models/layers.h"
#include "torch/optim/optimizer.h"
#include "torch/process_group.h"

namespace stoker::torch {

struct SessionOptions {
  std::string name = "training";  ///< whose checkpoints these are, where no launcher says
  Path checkpoints;               ///< the same; empty: nothing is saved there
  std::uint64_t save_every = 0;   ///< steps; 0: only when save() is called and at a stop
  std::uint32_t keep = 3;         ///< the newest so many checkpoints
};

/// What became of one step, for metrics-<rank>.csv. Not a number: not known.
struct Figures {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double lr = std::numeric_limits<double>::quiet_NaN();
  double top1 = std::numeric_limits<double>::quiet_NaN();  ///< part of the samples
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
  /// Reads the environment and meets the other ranks. Collective.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Rank rank() const;
  WorldSize world_size() const;
  ProcessGroup& group();

  /// Takes the model, and gives it the state of the checkpoint to go on from: that of STOKER_RESUME, without
  /// a launcher the newest whole one in `checkpoints`; else every rank takes rank 0's. `optimizer` may be
  /// null and must outlive the session; `first` are the rates of its first step. Collective.
  Result<std::unique_ptr<DataParallel>> begin(ModelState model, Optimizer* optimizer, const Rates& first = {},
                                              const DataParallelOptions& options = {});
  /// This rank's batches, from where begin() left. `dataset` must outlive the loader.
  Result<std::unique_ptr<data::Loader>> load(const data::Dataset& dataset, data::LoaderOptions options);

  /// Steps done, over all attempts.
  std::int64_t steps() const;

  /// After each optimizer step: records it, and saves when it is time or when some rank was asked to stop
  /// (SIGTERM, SIGUSR1, SIGINT, SIGHUP, STOKER_DEADLINE near). False then: leave the loop. Collective.
  Result<bool> stepped(const data::Batch& batch, const Figures& figures);
  /// Saves now. Collective.
  Status save();
  /// Saves what is not saved yet, and blocks until all is written. Collective.
  Status finish();
  /// What the program exits with after that: 0, or 75 where stepped() said to leave (docs/exit-codes.md).
  int exit_code() const;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A batch of images or arrays as a tensor, and its labels. Views the batch, which must outlive them.
at::Tensor image_tensor(data::Batch& batch);
at::Tensor label_tensor(data::Batch& batch);

}  // namespace stoker::torch
