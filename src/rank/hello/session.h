// The ladder of `stoker hello`: starts the ranks and climbs with them from names over connections to
// all-reduce, so that the first rung that breaks tells what is wrong. Every wait has a limit; who keeps the
// others waiting is told early and given up late. One thread; belongs to a process without other children.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/time.h"
#include "rank/hello/report.h"
#include "rank/plan.h"

namespace stoker::rank::hello {

struct SessionOptions {
  Plan plan;
  bool allocates = false;                 ///< srun asks for the nodes itself; their names are known later
  std::vector<std::string> srun_options;  ///< what that needs: partition, account, ...
  Environment environment;                ///< what the ranks inherit
  Path stoker;
  std::uint32_t gpus_per_rank = 0;
  std::string python;  ///< tries torch.distributed by this interpreter; empty: not tried
  Duration limit = std::chrono::seconds(30);        ///< for a rank to come, and for a rank that gives no sign
  Duration queue_limit = std::chrono::minutes(10);  ///< for the nodes to be granted
  bool measures_speed = true;
  bool looks_at_storage = false;  ///< whether the nodes see `paths`, what their own disks have, their clocks
  std::vector<AskedPath> paths;
  ByteCount local_needed;
  Words words;  ///< that rungs, findings and notes are told in
};

/// Who hears how it goes.
struct Audience {
  Progress& progress;
  std::function<void(const std::string&)> note;  ///< one line, at once: who is waited for
};

/// Climbs as far as it goes. No process of it is left when it returns. An error when not one rank came, or
/// Cancelled when the audience wants an end.
Result<Report> run_session(const SessionOptions& options, const Audience& audience);

}  // namespace stoker::rank::hello
