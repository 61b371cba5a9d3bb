// The network check of `stoker hello`: starts the ranks and tests names, connections, bandwidth and
// all-reduce in this order, so that the first failed step identifies the problem. Every wait has a limit;
// slow ranks are reported early and given up late. One thread; belongs to a process without other children.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/process.h"
#include "netcheck/report.h"
#include "rank/plan.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::netcheck {

struct NetworkCheckOptions {
  rank::Plan plan;
  bool allocates = false;                 ///< srun requests the nodes itself; their names are known later
  std::vector<std::string> srun_options;  ///< for that request: partition, account, ...
  Environment environment;                ///< environment of the ranks
  Path stoker;
  std::uint32_t gpus_per_rank = 0;
  std::string python;  ///< the interpreter for the torch.distributed test; empty: skipped
  Duration limit = std::chrono::seconds(30);        ///< for a rank to join, and for a rank without heartbeat
  Duration queue_limit = std::chrono::minutes(10);  ///< for the nodes to be granted
  bool measures_speed = true;
  bool checks_storage = false;  ///< whether the nodes see `paths`, their local disks, their clocks
  std::vector<CheckedPath> paths;
  ByteCount local_needed;
};

/// Receives progress and notes.
struct CheckListener {
  Progress& progress;
  std::function<void(const Message&)> note;  ///< one line, immediately: which rank delays the check
};

/// Runs all possible steps and leaves no process behind. Fails when no rank joined; Cancelled when the
/// listener requests a stop.
Result<Report> run_network_check(const NetworkCheckOptions& options, const CheckListener& listener);

}  // namespace stoker::netcheck
