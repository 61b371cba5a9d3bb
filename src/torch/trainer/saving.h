// A training's state to and from checkpoints. Without a checkpoint folder everything here does nothing. One
// object belongs to one thread of one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/interval.h"
#include "data/order/order.h"
#include "job/job.h"
#include "torch/models/layers.h"
#include "torch/named_tensor.h"
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

/// Where and how long checkpoints are kept.
struct SavingOptions {
  Path directory;    ///< where STOKER_CHECKPOINT_DIR does not say; empty: nowhere
  Path local;        ///< on each node's own disk, where steps of a run go first; empty: nowhere
  std::string name;  ///< of the run where STOKER_RUN_ID does not say
  std::uint32_t keep = 3;
  Duration keep_every{0};       ///< and the first of each such stretch of time
  std::uint32_t keep_best = 0;  ///< and so many that are best by `metric`
  std::string metric;
  bool is_automatic = false;                 ///< Saving::is_due() says when
  Duration mtbf{0};                          ///< for that
  Duration limit = std::chrono::minutes(5);  ///< for the other ranks' parts
  checkpoint::State hyper_parameters;        ///< for people
};

/// As the job says.
SavingOptions saving_options(const job::Job& job);

/// What validation found of a step's model.
struct Validated {
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
};

class Saving {
 public:
  /// Prepares the run's checkpoint folder.
  static Result<Saving> open(const SavingOptions& options, const RankEnvironment& environment);

  bool is_on() const { return saver_ != nullptr; }
  /// Takes the memory that saves need before training starts. `optimizer` is all that is kept beside the
  /// model.
  Status reserve(const ModelState& model, const NamedTensors& optimizer);
  /// Hands the state over; it is written in the background. A step that was saved before is left as it is.
  /// Collective. An error is of this save or an earlier one.
  Status save(const ModelState& model, const NamedTensors& optimizer, const Place& place);
  /// Whether `checkpoint.every: auto` wants a save now, so long after the last one. Asked on rank 0 only.
  bool is_due(double since_last_s, WallTime now);
  /// The model of that step was validated: its figures are stored with it, and `keep_best` judges by them.
  void saw_validation(Step step, const Validated& validated);
  /// Whether steps are judged by what validation finds of them.
  bool keeps_best() const { return keeps_best_; }
  /// Whether that step should be saved whatever `checkpoint.every` says: it was validated, and `keep_best` is
  /// on.
  bool wants(Step step) const { return keeps_best_ && validated_step_ == step; }
  /// How often `auto` saves, and why, when that has changed.
  std::optional<std::string> news();
  /// This training went on from that step, which therefore is saved already.
  void resumed_from(Step step) { saved_ = step; }
  /// The last step handed over, while it or the one before is on its way to the disk.
  std::optional<Step> being_written() const {
    return saver_ && saver_->is_busy() ? std::optional(saved_) : std::nullopt;
  }
  /// Blocks until all is written, at most SavingOptions::limit.
  Status finish();
  /// The same, but ends nothing: for what ends right after.
  Status wait();
  /// Each published step once.
  std::optional<checkpoint::SaveTimes> published();
  /// Why the node's own disk was passed over, once; nothing when it was not.
  std::optional<std::string> local_problem();
  /// Where step folders are.
  const Path& folder() const { return folder_; }

 private:
  Path folder_;
  Duration limit_{0};
  checkpoint::State hyper_parameters_;
  std::unique_ptr<checkpoint::Saver> saver_;
  Step saved_{-1};
  Step published_{-1};
  // Of `checkpoint.every: auto`.
  bool is_automatic_ = false;
  Duration mtbf_{0};
  std::optional<WallTime> deadline_;
  checkpoint::IntervalFacts costs_;
  std::optional<checkpoint::Interval> told_;      ///< as news() told it last
  std::optional<checkpoint::Interval> interval_;  ///< chosen since news() was asked
  bool was_measured_ = false;                     ///< when it did
  std::string local_problem_;                     ///< as told last
  bool keeps_best_ = false;
  Step validated_step_{-1};
  Validated validated_;
};

/// What a training goes on from.
struct Restored {
  Place place;
  /// How this training is another one than the checkpoint's: "world size 2 → 4", "lr 0.1 → 0.05".
  std::vector<std::string> differences;
};

/// Puts the state of the step in `folder` into the model and the optimizer's tensors. Checks every byte.
/// Hyper-parameters are compared with these; with none they are not. What another optimizer left, and what
/// the checkpoint lacks of `optimizer`, begins anew: zeros, the weights for their mean.
Result<Restored> restore(const Path& folder, const RankEnvironment& environment, const ModelState& model,
                         const NamedTensors& optimizer, const checkpoint::State& hyper_parameters = {});

/// The step to go on from: STOKER_RESUME's, or a newer one that only the nodes' own disks held, which is
/// brought to shared storage first. Empty: none. Collective over a run's ranks, which meet through files.
struct StepToResume {
  Path folder;
  std::string told;  ///< what a person should know of the nodes' disks; empty: nothing
};
Result<StepToResume> step_to_resume(const SavingOptions& options, const RankEnvironment& environment);

}  // namespace stoker::torch
