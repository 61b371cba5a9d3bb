// Saving and loading a training. Start here: `Saver` writes steps in the background, `load` reads one back on
// any number of ranks, `load_latest` finds the newest one that is whole. Used by the trainer, the Python
// module and, for listing (catalog.h), the command. Layout on disk: docs/formats/checkpoint.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/tensor_view.h"
#include "base/text.h"
#include "base/time.h"
#include "checkpoint/state.h"

namespace stoker::checkpoint {

/// Rows of a tensor that lie on one rank of several, as fully sharded training holds them.
struct ShardView {
  TensorView rows;             ///< what this rank holds, without rows when it is nothing
  Shape shape;                 ///< of the whole tensor
  std::int64_t first_row = 0;  ///< of `rows` in it
  bool is_optimizer = false;   ///< part `optimizer`, else `model`
};

/// What one rank hands over to be saved. Every rank passes the same names, types and shapes.
struct Contents {
  Step step;
  /// Part `model`: the same bytes on every rank, so each rank writes a share.
  std::vector<TensorView> parameters;
  /// Part `model`, too, but rank 0's bytes count: batch-norm statistics differ between ranks.
  std::vector<TensorView> buffers;
  /// Part `optimizer`: the same bytes on every rank. Named as PyTorch's state-dict utilities flatten them:
  /// "state.<parameter>.momentum_buffer"; scalars are tensors without dimensions.
  std::vector<TensorView> optimizer;
  /// Part `optimizer`, too, but rank 0's bytes count.
  std::vector<TensorView> optimizer_of_rank_zero;
  /// Tensors of which every rank writes the rows it holds; together they must be all rows, each once.
  std::vector<ShardView> shards;
  /// The same on every rank (rank 0's is stored): epoch, position, seed, learning rate ...
  State state;
  /// This rank's own: states of its random generators.
  State rank_state;
  /// For people and for `compare`: what the training was configured with. Rank 0's is stored.
  State hyper_parameters;
};

/// The points of the protocol (save/commit.cc) that one rank passes while it saves a step.
enum class CommitPoint {
  share_kept,        ///< on the node's own disk, where there is one (local/meeting.cc)
  pending_made,      ///< 1
  files_written,     ///< 2 and 3
  ready_told,        ///< 4
  all_ready,         ///< 5, rank 0
  manifest_written,  ///< 6, rank 0
  published,         ///< 7, rank 0: the step exists
  parent_synced,     ///< 8, rank 0
  pruned,            ///< 9, rank 0
  share_removed,     ///< from the node's own disk
};

/// Where and how a Saver writes. The same on every rank but for `rank`.
struct SaverOptions {
  Path directory;  ///< made if missing; belongs to one run
  Rank rank{0};
  WorldSize world_size{1};
  std::string run;         ///< run id; a directory holding steps of another run is refused
  std::string writer;      ///< the same on all ranks, different for every attempt of a run: "1", "2"
  int keep = 3;            ///< steps kept: the one just saved and the newest below it; 0 keeps all
  Duration keep_every{0};  ///< the first of each such stretch of time stays too; 0: none
  int keep_best = 0;       ///< so do the best by `metric`; 0: none
  std::string metric;      ///< a number of Contents::state; see retention.h for which way is better
  /// Where this node's ranks write first, on a disk of the node's own; a share is copied to `directory`
  /// behind that, and a step counts as saved once it is there. Belongs to one run; empty: straight to
  /// `directory`.
  Path local;
  Path reading;  ///< a step folder that `keep` must not remove: STOKER_RESUME; may be empty
  /// Samples of what the ranks share are compared before the commit: a tensor that differs between ranks
  /// would become a mixture. For contents that come from somebody else's program.
  bool compares_ranks = false;
  /// How long one save may take from the call to its commit, over all ranks. A rank that is missing then is
  /// named.
  Duration limit = std::chrono::minutes(10);
  /// Called on the writer thread after each point; may be empty. For tests and traces.
  std::function<void(CommitPoint)> observe;
};

/// Figures of the last committed step, for the trainer's metrics.
struct SaveTimes {
  Step step;
  double stall_s = 0;       ///< how long save() blocked on this rank
  double write_s = 0;       ///< from the end of the copy until this rank's files were synced, on either disk
  double commit_s = 0;      ///< from there until the step was published
  std::uint64_t bytes = 0;  ///< of the whole step on rank 0, of this rank's files on the others
  Status local_problem;     ///< why the last share could not be kept on the node's own disk
};

/// Saves steps in the background. Collective: every rank makes one and calls save() for the same steps in the
/// same order; ranks meet through files in the directory, never through the training's process group. A rank
/// whose save() fails, or that is not called, costs that step and no other. Thread-compatible: one thread of
/// the rank calls it. Two steps may be in flight.
class Saver {
 public:
  /// Makes the directory, removes what dead writers left there, starts the writer thread.
  static Result<std::unique_ptr<Saver>> create(SaverOptions options);
  /// Waits for the step in flight for at most a second: call finish() to know that it is safe.
  ~Saver();

  /// Optional: takes and touches the memory that the first save() of these tensors would take, before
  /// training starts. Contents of the tensors do not matter yet.
  Status reserve(const Contents& contents);

  /// Copies this rank's share and returns; the rest happens behind. Blocks longer only when both buffers are
  /// still being written. Returns the error of an earlier step that could not be written, once; the step
  /// given now is taken nevertheless. Tensors are not looked at after the return.
  Status save(const Contents& contents);

  /// Blocks until every step handed over is published or has failed; returns the first error not told yet.
  Status wait(Deadline deadline);
  /// wait(), then ends the writer thread; a step still in flight at the deadline is given up. Call it before
  /// leaving: the last step is safe only after it.
  Status finish(Deadline deadline);

  /// How many saves were handed over: the next one's turn.
  std::uint64_t turns() const;
  /// How the save of that turn ended; nothing while it is being written. Remembers the last 64.
  std::optional<Status> outcome(std::uint64_t turn) const;
  /// Blocks until that turn has ended, or the deadline; whether it has.
  bool wait_for_turn(std::uint64_t turn, Deadline deadline) const;

  /// Figures of the last published step, or nothing yet.
  std::optional<SaveTimes> last_times() const;
  /// True while a step is being written.
  bool is_busy() const;

 private:
  class Impl;
  explicit Saver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Rows of one tensor of a step, to be read.
struct RowTarget {
  bool is_optimizer = false;  ///< part `optimizer`, else `model`
  MutableTensorView rows;     ///< type and shape as in the checkpoint, but for the number of rows
  std::int64_t first_row = 0;
};

/// Reads parts of the step in `folder`: only the blocks that hold what is asked for, each checked. Errors as
/// load()'s; invalid when a target is not in the step, or in another form. `progress` may ask to stop.
Status read_rows(const Path& folder, const std::vector<RowTarget>& targets, Progress& progress);

/// Where a load puts the bytes: every tensor of the checkpoint must be named here and the reverse.
struct Targets {
  std::vector<MutableTensorView> model;      ///< parameters and buffers
  std::vector<MutableTensorView> optimizer;  ///< leave empty with `with_optimizer` unset
  bool with_optimizer = true;                ///< false: weights only, part `optimizer` is not read
  /// Tensors of part `optimizer` whose names begin so may be on one side only; a target that the checkpoint
  /// lacks is left as it is.
  std::vector<std::string> may_lack;
};

/// A step that was passed over, and why.
struct SkippedStep {
  Path folder;
  std::string why;
};

/// What came with the tensors.
struct Loaded {
  Path folder;
  Step step;
  WorldSize saved_by;  ///< ranks that wrote it
  State state;
  std::optional<State> rank_state;  ///< this rank's own; nothing when another number of ranks saved it
  State hyper_parameters;
  std::vector<std::string> lacked;   ///< targets that the checkpoint has not got (Targets::may_lack)
  std::vector<SkippedStep> skipped;  ///< newer steps that were not whole (load_latest only)
};

/// The rank that loads, in the world that loads.
struct Loader {
  Rank rank{0};
  WorldSize world_size{1};
};

/// Reads the step in `folder` into `targets`, every byte checked against its CRC-32C. On an error the targets
/// may be partly overwritten. Errors: not_found, corrupt (names the file and the damage), invalid with the
/// list of differences when names, types or shapes do not match.
Result<Loaded> load(const Path& folder, const Loader& loader, const Targets& targets);

/// Reads the newest step in `directory` that is whole; steps that are not are named in `skipped`. not_found
/// when there is none: "<directory>: no valid checkpoint (2 not whole: step-200: ...)". A mismatch with
/// `targets` is an error at once: an older step would not match either.
Result<Loaded> load_latest(const Path& directory, const Loader& loader, const Targets& targets);

}  // namespace stoker::checkpoint
