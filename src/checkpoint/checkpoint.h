// Saving and loading a training. Start here: `Saver` writes steps in the background, `load` reads one back on
// any number of ranks, `load_latest` finds the newest one that is whole. Used by the trainer, the Python
// module and, for listing (catalog.h), the command. Layout on disk: docs/formats/checkpoint.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/tensor_view.h"
#include "base/text.h"
#include "base/time.h"
#include "checkpoint/state.h"

namespace stoker::checkpoint {

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
  /// The same on every rank (rank 0's is stored): epoch, position, seed, learning rate ...
  State state;
  /// This rank's own: states of its random generators.
  State rank_state;
  /// For people and for `compare`: what the training was configured with. Rank 0's is stored.
  State hyper_parameters;
};

/// The points of the protocol (save/commit.cc) that one rank passes while it saves a step.
enum class CommitPoint {
  pending_made,      ///< 1
  files_written,     ///< 2 and 3
  ready_told,        ///< 4
  all_ready,         ///< 5, rank 0
  manifest_written,  ///< 6, rank 0
  published,         ///< 7, rank 0: the step exists
  parent_synced,     ///< 8, rank 0
  pruned,            ///< 9, rank 0
};

/// Where and how a Saver writes. The same on every rank but for `rank`.
struct SaverOptions {
  Path directory;  ///< made if missing; belongs to one run
  Rank rank{0};
  WorldSize world_size{1};
  std::string run;     ///< run id; a directory holding steps of another run is refused
  std::string writer;  ///< the same on all ranks, different for every attempt of a run: "1", "2"
  int keep = 3;        ///< steps kept, the newest ones; 0 keeps all
  Path reading;        ///< a step folder that `keep` must not remove: STOKER_RESUME; may be empty
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
  double write_s = 0;       ///< from the end of the copy until this rank's files were synced
  double commit_s = 0;      ///< from there until the step was published
  std::uint64_t bytes = 0;  ///< of the whole step on rank 0, of this rank's files on the others
};

/// Saves steps in the background. Collective: every rank makes one and calls save() for the same steps in the
/// same order; ranks meet through files in the directory, never through the training's process group.
/// Thread-compatible: one thread of the rank calls it. Two steps may be in flight.
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

  /// Figures of the last published step, or nothing yet.
  std::optional<SaveTimes> last_times() const;
  /// True while a step is being written.
  bool is_busy() const;

 private:
  class Impl;
  explicit Saver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Where a load puts the bytes: every tensor of the checkpoint must be named here and the reverse.
struct Targets {
  std::vector<MutableTensorView> model;      ///< parameters and buffers
  std::vector<MutableTensorView> optimizer;  ///< leave empty with `with_optimizer` unset
  bool with_optimizer = true;                ///< false: weights only, part `optimizer` is not read
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
