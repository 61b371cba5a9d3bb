// Saves and loads training checkpoints. Start here: `Saver` writes steps in the background, `load` reads one
// on any number of ranks, `load_latest` finds the newest valid one. Used by the trainer, the Python module
// and, for listing (catalog.h), the CLI. Layout on disk: docs/formats/checkpoint.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/progress.h"
#include "stoker/state_values.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/tensor_view.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Rows of a tensor on one of several ranks, as in fully sharded training.
struct ShardView {
  TensorView rows;             ///< rows of this rank; may be empty
  Shape shape;                 ///< shape of the whole tensor
  std::int64_t first_row = 0;  ///< index of the first row in the whole tensor
  bool is_optimizer = false;   ///< part `optimizer`, otherwise `model`
};

/// Input of one rank to a save. All ranks pass the same names, types and shapes.
struct StepContents {
  Step step;
  /// Part `model`: identical on all ranks, so each rank writes a share.
  std::vector<TensorView> parameters;
  /// Part `model`; only rank 0's values are saved: batch-norm statistics differ between ranks.
  std::vector<TensorView> buffers;
  /// Part `optimizer`: identical on all ranks. Names are PyTorch's flattened state-dict names:
  /// "state.<parameter>.momentum_buffer". Scalars are tensors without dimensions.
  std::vector<TensorView> optimizer;
  /// Part `optimizer`; only rank 0's values are saved.
  std::vector<TensorView> rank0_optimizer;
  /// Each rank writes its own rows. Together they must cover every row once.
  std::vector<ShardView> shards;
  /// Identical on all ranks (rank 0's is stored): epoch, position, seed, learning rate ...
  StateValues state;
  /// State of this rank only: its random generators.
  StateValues rank_state;
  /// Configuration of the training, for display and comparison. Rank 0's is stored.
  StateValues hyper_parameters;
};

/// Points of the commit protocol (save/commit.cc) that a rank passes in each save.
enum class CommitPoint {
  local_share_written,   ///< on the node-local disk, if any (local/recovery.cc)
  pending_made,          ///< 1
  files_written,         ///< 2 and 3
  ready_marker_written,  ///< 4
  all_ready,             ///< 5, rank 0
  manifest_written,      ///< 6, rank 0
  published,             ///< 7, rank 0: the step exists
  parent_synced,         ///< 8, rank 0
  pruned,                ///< 9, rank 0
  local_share_removed,   ///< from the node-local disk
};

/// Options of a Saver. Identical on all ranks except `rank`.
struct SaverOptions {
  Path directory;  ///< created if missing; belongs to one run
  Rank rank{0};
  WorldSize world_size{1};
  std::string run;     ///< run id; a directory with steps of a different run is an error
  std::string writer;  ///< identical on all ranks, unique for each attempt of a run: "1", "2"
  /// Saves of these steps that this rank has reported as failed without a saver, by step.
  std::map<Step, std::uint64_t> failed_attempts = {};
  int keep_last = 3;       ///< number of newest steps to keep, counted from the saved one; 0: all
  Duration keep_every{0};  ///< also keep the first step of each interval of this length; 0: none
  int keep_best = 0;       ///< also keep the best steps by `metric`; 0: none
  std::string metric;      ///< name of a number in StepContents::state; its direction: retention.h
  /// Node-local directory that the ranks of this node write to first. Shares are then copied to `directory`,
  /// and a step counts as saved once it is there. Belongs to one run; empty: write directly to `directory`.
  Path local;
  Path protected_step;  ///< step folder that pruning must not remove (STOKER_RESUME); may be empty
  /// Before the commit, compare the tensors shared by all ranks: a tensor that differs between ranks would be
  /// saved as a mix. save() then reads all of them, not only this rank's share. For contents from user code.
  bool compares_ranks = false;
  /// Time limit of one save over all ranks, from the call to the commit. A missing rank is then reported.
  Duration limit = std::chrono::minutes(10);
  /// Called on the writer thread after each point; may be empty. For tests and traces.
  std::function<void(CommitPoint)> observe;
};

/// Times of the last committed step, for the trainer's metrics.
struct SaveTimes {
  Step step;
  double stall_s = 0;       ///< time that save() blocked on this rank
  double write_s = 0;       ///< from the end of the copy until this rank's files were synced, on either disk
  double commit_s = 0;      ///< from then until the step was published
  std::uint64_t bytes = 0;  ///< of the whole step on rank 0, of the own files on other ranks
  Status local_error;       ///< why the last share could not be written to the node-local disk
};

/// Saves steps in the background. Collective: every rank creates one and calls save() for the same steps in
/// the same order. Ranks communicate through files in the directory, never through the training's process
/// group. If save() fails on a rank or is not called, only that step is lost. Thread-compatible: used by one
/// thread of the rank. At most two steps are in flight.
class Saver {
 public:
  /// Creates the directory, removes the leftovers of dead writers and starts the writer thread.
  static Result<std::unique_ptr<Saver>> create(SaverOptions options);
  /// Waits at most a second for the step in flight. Call finish() to be sure that it is saved.
  ~Saver();

  /// Optional: allocates and touches the memory that the first save() of these tensors needs. The contents of
  /// the tensors are not read.
  Status reserve(const StepContents& contents);

  /// Copies this rank's share and returns; the write continues in the background. Blocks longer only while
  /// both buffers are being written. Returns the error of an earlier failed step, once; the current step is
  /// accepted anyway. The tensors are not read after the return.
  Status save(const StepContents& contents);

  /// Instead of save(), on a rank that cannot save `step`: the save fails on all ranks with this reason at
  /// once, and not when the other ranks have waited for the time limit.
  void abandon(Step step, const Status& why);

  /// Blocks until every step is published or has failed. Returns the first unreported error.
  Status wait(Deadline deadline);
  /// wait(), then ends the writer thread. A step still in flight at the deadline is aborted. Call it before
  /// exit: the last step is saved only after it returns.
  Status finish(Deadline deadline);

  /// Number of saves so far: the id of the next one.
  std::uint64_t save_count() const;
  /// Result of the save with this id; nullopt while it is in flight. The last 64 are remembered.
  std::optional<Status> outcome(std::uint64_t save_id) const;
  /// Blocks until that save has ended or the deadline passes. True if it has ended.
  bool wait_for_save(std::uint64_t save_id, Deadline deadline) const;

  /// Times of the last published step; nullopt before the first.
  std::optional<SaveTimes> last_times() const;
  /// True while a step is in flight.
  bool is_busy() const;

 private:
  class Impl;
  explicit Saver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Rows of one tensor of a step, to be loaded.
struct RowTarget {
  bool is_optimizer = false;  ///< part `optimizer`, otherwise `model`
  MutableTensorView rows;     ///< type and shape as in the checkpoint, except for the number of rows
  std::int64_t first_row = 0;
  bool is_scratch = false;  ///< may be overwritten before everything is verified: read once
};

/// Loads parts of the step in `folder`. Reads only the required blocks, twice: targets without `is_scratch`
/// are unchanged until all blocks are verified. Errors as load(); invalid if a target is missing in the step
/// or has a different type or shape. `progress` can cancel.
Status read_rows(const Path& folder, const std::vector<RowTarget>& targets, Progress& progress);

/// Destination of a load. Its tensor names must match the checkpoint.
struct Targets {
  std::vector<MutableTensorView> model;      ///< parameters and buffers
  std::vector<MutableTensorView> optimizer;  ///< empty if `with_optimizer` is false
  bool with_optimizer = true;                ///< false: part `optimizer` is not read
  /// Optimizer tensors with these name prefixes may be missing on either side. A target without saved tensor
  /// is left unchanged.
  std::vector<std::string> optional_prefixes;
};

/// A skipped step and the reason.
struct SkippedStep {
  Path folder;
  std::string why;
};

/// Result of a load besides the tensors.
struct Loaded {
  Path folder;
  Step step;
  WorldSize saved_world_size;  ///< number of ranks that saved it
  StateValues state;
  std::optional<StateValues>
      rank_state;  ///< of this rank; nullopt after a save with a different number of ranks
  StateValues hyper_parameters;
  std::vector<std::string> missing;  ///< targets missing in the checkpoint (Targets::optional_prefixes)
  std::vector<SkippedStep> skipped;  ///< newer invalid steps (load_latest only)
};

/// The loading rank and world.
struct LoadingRank {
  Rank rank{0};
  WorldSize world_size{1};
};

/// Loads the step in `folder` into `targets` and verifies every byte against its CRC-32C. The targets are
/// unchanged until everything is verified; a second pass then fills them. Errors: not_found, corrupt (with
/// file and damage), invalid with the list of differences if names, types or shapes do not match. "changed
/// while it was loaded" is the only error after which the targets are partly overwritten.
Result<Loaded> load(const Path& folder, const LoadingRank& loader, const Targets& targets);

/// Loads the newest valid step in `directory` and lists invalid ones in `skipped`. not_found if there is
/// none: "<directory>: no valid checkpoint (step-200: ...)". A mismatch with `targets` is an immediate error:
/// older steps would not match either.
Result<Loaded> load_latest(const Path& directory, const LoadingRank& loader, const Targets& targets);

}  // namespace stoker::checkpoint
