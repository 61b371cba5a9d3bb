// What a job wants on every node's own disk: brought there before its ranks start, taken back after they have
// ended. One `stoker stage` per node does it and lives as long as the run, since Slurm starts nothing new in
// a job that it is ending. Main thread only: it blocks signals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "job/job.h"
#include "rank/plan.h"
#include "record/run_folder.h"

namespace stoker::launch {

class StopSignals;

/// What one node said in the end.
struct StagedNode {
  int node = 0;
  std::string host;
  std::string folder;  ///< on that node
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint64_t fingerprint = 0;
};

struct StagingOptions {
  const job::Job& job;
  const rank::Plan& plan;
  const record::Attempt& attempt;
  Path stoker;
  Environment environment;
  int err_fd = 2;  ///< progress and what goes wrong are told there
};

/// Staging of one attempt. Destroying it takes back and clears what is left, as finish does.
class Staging {
 public:
  /// Starts it on all nodes and waits until everything is there. The error of the first node that cannot;
  /// Corrupt when two nodes did not get the same; Timeout after stage.timeout; Cancelled when a signal asks
  /// for an end meanwhile, which then is in `interrupted_by`.
  static Result<std::unique_ptr<Staging>> start(const StagingOptions& options, int* interrupted_by);
  ~Staging();

  /// In node order.
  const std::vector<StagedNode>& nodes() const { return nodes_; }
  /// What they copied back, once it is over.
  const std::vector<StagedNode>& back() const { return back_; }
  /// The process that must live as long as the ranks do.
  pid_t pid() const { return child_.pid(); }
  /// The value of rank::kStageVariable.
  std::string folders() const;

  /// Has everything that is wanted back copied to the attempt's folder and the folders on the nodes removed;
  /// waits for it. An error names the first node that could not.
  Status finish(Deadline deadline);

 private:
  Staging(Child child, Fd orders, Fd answers, int nodes)
      : child_(std::move(child)),
        orders_(std::move(orders)),
        answers_(std::move(answers)),
        expected_(nodes) {}
  Status hear(Deadline deadline, const char* what, const StopSignals* signals, int* interrupted_by);
  Status take_line(std::string_view line);
  Status compare_nodes() const;

  Child child_;
  Fd orders_;  // closed: the ranks are over
  Fd answers_;
  int expected_ = 1;
  std::string partial_;
  std::vector<StagedNode> nodes_;
  std::vector<StagedNode> back_;
  Status problem_;  // of the first that could not copy back
};

/// How long before the end of its time a run is ended, so that what it made can be copied back.
Duration time_to_copy_back(const job::Job& job, Duration time);

}  // namespace stoker::launch
