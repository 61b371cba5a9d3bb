// The datasets of a job on one node: staged before its ranks start, and kept and served to other nodes as
// long as the run lasts. Used by `stoker stage`. Belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "job/job.h"
#include "stage/broadcast/peer_list.h"
#include "stage/node.h"
#include "stage/place/place_dataset.h"

namespace stoker::cli {

/// A RAM disk's cache goes with its run, because its bytes are memory of the job.
class NodeDatasets {
 public:
  NodeDatasets(const job::Job& job, std::string run_id, int node)
      : job_(job), run_id_(std::move(run_id)), node_(node) {}
  NodeDatasets(const NodeDatasets&) = delete;
  NodeDatasets& operator=(const NodeDatasets&) = delete;
  ~NodeDatasets();

  /// Whether this job broadcasts datasets between its nodes.
  bool needs_peers(int nodes) const;
  /// Starts to listen: the line for the run that started this node. Without it, place() stages alone.
  std::string listen();

  /// Copies the datasets to this node. The ranks find them by links in rank::kDataFolder of `staged`. `notes`
  /// gets a line for each, if it is set. Reads the list of peers from standard input.
  Result<stage::TransferStats> place(const Path& staged, const std::string& host, Output* notes,
                                     Progress& progress);
  /// Keeps the leases; see stage::OwnLease::refresh().
  void refresh() const;

 private:
  Result<stage::PlaceRequest> request_for(const job::DataSource& source, bool is_training);
  std::optional<stage::PeerList> wait_for_peers(const Progress& progress) const;

  const job::Job& job_;
  const std::string run_id_;
  const int node_;
  std::optional<stage::NodeFolder> memory_;
  std::unique_ptr<stage::SwarmServer> server_;
  std::optional<stage::BroadcastNodes> nodes_;
  std::vector<stage::PlacedDataset> datasets_;  // with their leases; ends before its server
};

}  // namespace stoker::cli
