// A training's state to and from checkpoints. Without a checkpoint folder everything here does nothing. One
// object belongs to one thread of one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "base/strong.h"
#include "checkpoint/checkpoint.h"
#include "data/order/order.h"
#include "job/job.h"
#include "torch/models/model.h"
#include "torch/optim/sgd.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

/// What the ranks together have seen of the running epoch.
struct EpochSums {
  double loss = 0;  ///< sum over samples
  double top1 = 0;
  double samples = 0;
  double seconds = 0;  ///< of training, validation not counted
};

/// Where a training is, besides its tensors. The same on all ranks.
struct Place {
  Step step{0};
  data::OrderState data;
  EpochSums sums;
};

class Saving {
 public:
  /// Prepares the run's checkpoint folder (STOKER_CHECKPOINT_DIR, else checkpoint.directory).
  static Result<Saving> open(const job::Job& job, const RankEnvironment& environment);

  bool is_on() const { return saver_ != nullptr; }
  /// Takes the memory that saves need before training starts.
  Status reserve(const Model& model, const Sgd& sgd);
  /// Hands the state over; it is written in the background. A step that was saved before is left as it is.
  /// Collective. An error is of this save or an earlier one.
  Status save(const Model& model, const Sgd& sgd, const Place& place);
  /// This training went on from that step, which therefore is saved already.
  void resumed_from(Step step) { saved_ = step; }
  /// Blocks until all is written.
  Status finish();
  /// Each published step once.
  std::optional<checkpoint::SaveTimes> published();
  /// Where step folders are.
  const Path& folder() const { return folder_; }

 private:
  Path folder_;
  Duration limit_{0};
  checkpoint::State hyper_parameters_;
  std::unique_ptr<checkpoint::Saver> saver_;
  Step saved_{-1};
  Step published_{-1};
};

/// Puts the state of the step in `folder` into model and optimizer. Checks every byte.
Result<Place> restore(const Path& folder, const RankEnvironment& environment, Model& model, Sgd& sgd);

}  // namespace stoker::torch
