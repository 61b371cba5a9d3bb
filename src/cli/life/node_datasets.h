// The datasets of a job on one node: staged before its ranks start or beside them, and kept and served to
// other nodes as long as the run lasts. Used by `stoker stage`. Belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "job/job.h"
#include "stage/node.h"
#include "stage/place/place_dataset.h"

namespace stoker::cli {

/// Whether ranks of the job may start while a dataset is still copied.
bool starts_beside_copy(const job::Job& job);

/// A node of a run.
struct RunNode {
  std::string run_id;
  int number = 0;
  std::string host;
};

/// A RAM disk's cache goes with its run, because its bytes are memory of the job.
class NodeDatasets {
 public:
  /// `notes` gets a line for each dataset, if it is set. Everything given must outlive the object.
  NodeDatasets(const job::Job& job, RunNode node, Output* notes, Progress& progress);
  NodeDatasets(const NodeDatasets&) = delete;
  NodeDatasets& operator=(const NodeDatasets&) = delete;
  ~NodeDatasets();

  /// Copies the datasets to this node, or only their first shards if the ranks may start with them. The ranks
  /// find them by links in rank::kDataFolder of `staged`. `nodes`: that stage together, and outlive the
  /// object; nothing: this one alone.
  Result<stage::TransferStats> place(const Path& staged, std::optional<stage::BroadcastNodes> nodes);
  /// Whether place() has left shards to be copied, until take_rest() returned them.
  bool has_rest() const { return !rest_.empty(); }
  /// What was copied beside the ranks, once: when it is complete, or after stop().
  std::optional<stage::TransferStats> take_rest();
  /// Ends copying.
  void stop();
  /// Keeps the leases; see stage::OwnLease::refresh().
  void refresh() const;

 private:
  class Placement;
  Result<stage::PlaceRequest> request_for(const job::DataSource& source, bool is_training);
  std::vector<std::string> names() const;
  std::string training_data() const;

  const job::Job& job_;
  const RunNode node_;
  Output* const notes_;
  Progress& progress_;
  std::optional<stage::NodeFolder> memory_;
  std::optional<stage::BroadcastNodes> nodes_;
  std::vector<std::unique_ptr<Placement>> datasets_;  // with their leases
  std::vector<const Placement*> rest_;                // that place() did not wait for
};

}  // namespace stoker::cli
