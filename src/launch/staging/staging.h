// Stages the job's files in to every node's local disk before the ranks start, and stages results out
// afterwards. One `stoker stage` per node does it and lives as long as the run, because Slurm starts nothing
// new in a job that it is ending. Main thread only: it blocks signals.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/thread.h"
#include "job/job.h"
#include "rank/plan.h"
#include "record/run_folder.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

class StagingSignals;

/// The final report of one node.
struct StagedNode {
  int node = 0;
  std::string host;
  std::string folder;  ///< on that node
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t received_bytes = 0;  ///< of them from other nodes
  std::uint64_t cached_bytes = 0;    ///< of datasets that were there already
  bool has_rest = false;             ///< datasets are still copied
  double seconds = 0;
  std::uint64_t fingerprint = 0;
};

struct StagingOptions {
  const job::Job& job;
  const rank::Plan& plan;
  const record::Attempt& attempt;
  Path stoker;
  Environment environment;
  int err_fd = 2;  ///< for progress and errors
};

/// Staging of one attempt. Its destructor stages out and cleans up like finish.
class Staging {
 public:
  /// Starts it on all nodes and waits until every file is staged in. Returns the error of the first node that
  /// fails; Corrupt when two nodes got different files; Timeout after stage.timeout; Cancelled after a
  /// termination signal, which is then in `interrupted_by`.
  static Result<std::unique_ptr<Staging>> start(const StagingOptions& options, int* interrupted_by);
  ~Staging();

  /// In node order.
  const std::vector<StagedNode>& nodes() const { return nodes_; }
  /// The files staged out, after the end.
  const std::vector<StagedNode>& back() const { return back_; }
  /// What was copied beside the ranks, after the end.
  const std::vector<StagedNode>& rest() const { return rest_; }
  /// From here on, what a node has copied beside the ranks is reported when it arrives, from a thread. Call
  /// it once.
  void watch_rest(std::function<void(const StagedNode&)> on_rest);
  /// This process must live as long as the ranks.
  pid_t pid() const { return child_.pid(); }
  /// The value of rank::kStageVariable.
  std::string folders() const;

  /// Stages the results out to the attempt's folder, removes the folders on the nodes, and waits for both.
  /// The error names the first node that failed.
  Status finish(Deadline deadline);

 private:
  Staging(Child child, Fd orders, Fd answers, int nodes)
      : child_(std::move(child)),
        orders_(std::move(orders)),
        answers_(std::move(answers)),
        expected_(nodes) {}
  Status await_answers(Deadline deadline, const char* what, const StagingSignals* signals,
                       int* interrupted_by);
  // False once all nodes have closed their end.
  Result<bool> read_answers();
  Status parse_line(std::string_view line);
  Status compare_nodes() const;
  // Once all nodes have an address, or after kPeersTimeout.
  void send_peers();
  // To all nodes.
  void send_line(std::string_view line);

  Child child_;
  Fd orders_;  // closing it reports the end of the ranks
  Fd answers_;
  int expected_ = 1;
  std::string partial_;
  std::vector<StagedNode> nodes_;
  std::vector<StagedNode> back_;
  std::vector<StagedNode> rest_;
  std::function<void(const StagedNode&)> on_rest_;
  Thread watcher_;                                 // the only reader of answers until finish()
  std::map<int, std::vector<std::string>> peers_;  // addresses of nodes
  std::optional<Deadline> peers_deadline_;
  bool has_sent_peers_ = false;
  std::string list_line_;  // of the first node, for all
  Status problem_;         // of the first node that could not stage out
};

/// How long before its time limit a run is ended to leave time for staging out.
Duration stage_out_time(const job::Job& job, Duration time);

}  // namespace stoker::launch
