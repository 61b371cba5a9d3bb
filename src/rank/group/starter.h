// The child processes of run_group: a `stoker rank` per rank, or one process that starts them all (srun, or
// this node's torchrun), and a helper for background work. Used by RankGroup. One thread.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <sys/types.h>

#include "base/process.h"
#include "rank/group/group.h"
#include "rank/process/output.h"
#include "stoker/status.h"

namespace stoker::rank {

/// A child process: a `stoker rank`, or the one that starts them all.
struct Starter {
  Child child;
  std::optional<int> rank;  ///< empty: srun, or this node's torchrun
  Fd out;
  Fd err;
  LinePrefixer out_lines;  ///< for all ranks except 0
  LinePrefixer err_lines;
  LineBuffer out_buffer;  ///< for rank 0
  LineBuffer err_buffer;
  bool has_ended = false;
};

/// Where the processes join the run.
struct GroupAddresses {
  std::string ranks;
  std::string nodes;  ///< with torchrun; else ""
};

/// Starts the processes of the plan. After an error, `starters` has the started processes.
Status start_ranks(const GroupOptions& options, const GroupAddresses& addresses,
                   std::list<Starter>* starters);

/// Forks a low-priority process group that runs `task` and exits. Returns its pid, or -1.
pid_t start_background(const std::function<void()>& task);

}  // namespace stoker::rank
