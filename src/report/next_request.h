// What to request from Slurm next time, by what a run used. Pure functions of facts.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report {

/// A setting of the job file and the line of a batch script for the same request; both empty: no advice.
struct NextRequest {
  std::string setting;  ///< "resources.time: 45m"
  std::string option;   ///< "#SBATCH --time=00:45:00"

  bool is_empty() const { return setting.empty(); }
};

/// A time limit of 1.25 times the time used and at least 5 minutes more, if the run is done and used less
/// than half of its limit.
NextRequest next_time(const RunFacts& facts);
/// Memory of 1.25 times the peak in whole GB, if the run is done and used less than half of its request, or
/// more than 95 % of it.
NextRequest next_memory(const RunFacts& facts);
/// Cores of a rank, if the ranks used less than half of theirs: 1.25 times the mean.
NextRequest next_cpus(const RunFacts& facts);

}  // namespace stoker::report
