// Saves and restores the state of a training. Does nothing without a checkpoint folder. One object belongs to
// one thread of one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/interval.h"
#include "job/job.h"
#include "loader/sampler/order.h"
#include "stoker/checkpoint.h"
#include "stoker/model_state.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "train/device/device_save.h"
#include "train/models/layers.h"
#include "train/trainer/environment.h"

namespace stoker::train {

/// Sums over all ranks in the running epoch.
struct EpochSums {
  double loss = 0;  ///< sum over samples
  double top1 = 0;
  double samples = 0;
  double seconds = 0;  ///< training time, without validation
};

/// Position of a training, without its tensors. Equal on all ranks.
struct ResumePosition {
  Step step{0};
  loader::OrderState data;
  EpochSums sums;
};

/// Where to save, and which checkpoints to keep.
struct CheckpointManagerOptions {
  Path directory;    ///< default for STOKER_CHECKPOINT_DIR; empty: no checkpoints
  Path local;        ///< node-local folder for the first copy of a run's steps; empty: none
  std::string name;  ///< default for STOKER_RUN_ID
  std::uint32_t keep_last = 3;
  Duration keep_every{0};       ///< also keep the first step of each interval
  std::uint32_t keep_best = 0;  ///< also keep the best steps by `metric`
  std::string metric;
  bool is_automatic = false;                 ///< CheckpointManager::is_due() decides
  Duration mtbf{0};                          ///< mean time between failures, for is_due()
  Duration limit = std::chrono::minutes(5);  ///< timeout for the shares of all ranks
  checkpoint::StateValues hyper_parameters;  ///< stored for information
};

/// Options from the job.
CheckpointManagerOptions checkpoint_manager_options(const job::Job& job);

/// Metrics of a validated step.
struct ValidationMetrics {
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
};

class CheckpointManager {
 public:
  /// Prepares the run's checkpoint folder.
  static Result<CheckpointManager> open(const CheckpointManagerOptions& options,
                                        const RankEnvironment& environment);

  bool is_on() const { return saver_ != nullptr; }
  /// Allocates the memory of saves before training starts. `optimizer` is all state besides the model.
  Status reserve(const ModelState& model, const NamedTensors& optimizer);
  /// Copies the state and returns; a background thread writes it. Skips a step that was saved before.
  /// Collective. Returns an error of this save or of an earlier one.
  Status save(const ModelState& model, const NamedTensors& optimizer, const ResumePosition& position);
  /// Whether `checkpoint.every: auto` requires a save this long after the last one. Called on rank 0 only.
  bool is_due(double since_last_s, WallTime now);
  /// Stores the validation metrics of a step with its checkpoint, for `keep_best`.
  void record_validation(Step step, const ValidationMetrics& validated);
  /// Whether `keep_best` is on.
  bool keeps_best() const { return keeps_best_; }
  /// Whether a step must be saved regardless of `checkpoint.every`: it was validated, and `keep_best` is on.
  bool should_save(Step step) const { return keeps_best_ && validated_step_ == step; }
  /// The interval of `auto` and its reason, after a change.
  std::optional<std::string> notice();
  /// The training resumed from this step, which is saved already.
  void resumed_from(Step step) { saved_ = step; }
  /// The last saved step, while it or its predecessor is being written.
  std::optional<Step> step_in_flight() const;
  /// Blocks until all steps are written, at most CheckpointManagerOptions::limit.
  Status finish();
  /// Like finish(), but keeps the writer thread: for a process that is about to end.
  Status wait();
  /// Returns each published step once.
  std::optional<checkpoint::SaveTimes> published();
  /// Why the node-local disk was not used, once; empty if it was.
  std::optional<std::string> local_error();
  /// Folder of the steps.
  const Path& folder() const { return folder_; }

 private:
  /// The state in host memory.
  struct HostState {
    ModelState model;  ///< without `all`
    NamedTensors optimizer;
  };
  HostState host_state(const ModelState& model, const NamedTensors& optimizer);
  bool is_saver_in_use() const;

  Path folder_;
  Duration limit_{0};
  checkpoint::StateValues hyper_parameters_;
  std::unique_ptr<checkpoint::Saver> saver_;
  std::unique_ptr<DeviceSave> device_save_;  ///< of a model on a GPU; uses the saver
  double device_stall_s_ = 0;                ///< of the last save from a GPU
  Step saved_{-1};
  Step published_{-1};
  // For `checkpoint.every: auto`.
  bool is_automatic_ = false;
  Duration mtbf_{0};
  std::optional<WallTime> deadline_;
  checkpoint::CheckpointCosts costs_;
  std::optional<checkpoint::Interval> reported_interval_;  ///< last interval that notice() returned
  std::optional<checkpoint::Interval> interval_;           ///< chosen since the last notice()
  bool was_measured_ = false;                              ///< costs_.is_measured at the last notice()
  std::string local_error_;                                ///< last reported error
  bool keeps_best_ = false;
  Step validated_step_{-1};
  ValidationMetrics validated_;
};

/// A restored training.
struct Restored {
  ResumePosition position;
  /// Differences from the saved training: "world size 2 → 4", "lr 0.1 → 0.05".
  std::vector<std::string> differences;
};

/// Loads the step in `folder` into the tensors of model and optimizer, and verifies every byte. Compares
/// hyper-parameters unless these are empty. Resets state of a different optimizer and state that the
/// checkpoint lacks: to zeros, or to the weights for an EMA.
Result<Restored> restore(const Path& folder, const RankEnvironment& environment, const ModelState& model,
                         const NamedTensors& optimizer, const checkpoint::StateValues& hyper_parameters = {});

/// The step to resume from: STOKER_RESUME, or a newer one that only node-local disks hold, which is copied to
/// shared storage first. Empty: none. Collective over the ranks of a run, which coordinate through files.
struct ResumeStep {
  Path folder;
  std::string notice;  ///< note on the node-local disks; empty: none
};
Result<ResumeStep> find_resume_step(const CheckpointManagerOptions& options,
                                    const RankEnvironment& environment);

}  // namespace stoker::train
