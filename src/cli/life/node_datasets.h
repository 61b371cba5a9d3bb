// The datasets of a job on one node: staged before its ranks start, and kept and served to other nodes as
// long as the run lasts. Used by `stoker stage`. Belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "job/job.h"
#include "stage/node.h"
#include "stage/place/place_dataset.h"

namespace stoker::cli {

/// A RAM disk's cache goes with its run, because its bytes are memory of the job.
class NodeDatasets {
 public:
  NodeDatasets(const job::Job& job, std::string run_id) : job_(job), run_id_(std::move(run_id)) {}
  NodeDatasets(const NodeDatasets&) = delete;
  NodeDatasets& operator=(const NodeDatasets&) = delete;
  ~NodeDatasets();

  /// Copies the datasets to this node. The ranks find them by links in rank::kDataFolder of `staged`. `notes`
  /// gets a line for each, if it is set. `nodes`: that stage together; nothing: this one alone.
  Result<stage::TransferStats> place(const Path& staged, std::optional<stage::BroadcastNodes> nodes,
                                     const std::string& host, Output* notes, Progress& progress);
  /// Keeps the leases; see stage::OwnLease::refresh().
  void refresh() const;

 private:
  Result<stage::PlaceRequest> request_for(const job::DataSource& source, bool is_training);

  const job::Job& job_;
  const std::string run_id_;
  std::optional<stage::NodeFolder> memory_;
  std::optional<stage::BroadcastNodes> nodes_;
  std::vector<stage::PlacedDataset> datasets_;  // with their leases
};

}  // namespace stoker::cli
