// What a job waits for (`after:`): other runs, found by job file, name or id, as dependencies of its own job.
// Used before a submission, by the job when it begins, and to say what a waiting run waits for.
// Thread-compatible.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "job/job.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// A run that has to be done first.
struct Predecessor {
  record::RunFolder run;
  std::string dependency;  ///< "afterok:812"; "" when it is done already
};

/// The runs that `job.after` means. An entry that ends in .yaml or .yml is a job file (relative to `base`),
/// and means the newest run of its name, as a bare name does; anything else is a run as on the command line.
/// Invalid when one has failed or is no run yet, Unavailable when how it is cannot be told; without a
/// scheduler nobody is asked, and what waits or runs is taken as it is recorded.
Result<std::vector<Predecessor>> find_predecessors(const job::Job& job, const Path& base,
                                                   slurm::Scheduler* scheduler, Deadline deadline);

/// "afterok:812,afterany:813"; "" when all are done.
std::string dependency_of(std::span<const Predecessor> predecessors);

/// Their folders, absolute.
std::vector<std::string> folders_of(std::span<const Predecessor> predecessors);

/// Ok when the runs in these folders are all done, as their records say. Waits for records that are late on
/// this host, until `deadline`. Invalid names the one that is not.
Status check_predecessors(std::span<const std::string> folders, Deadline deadline);

/// "after run X, which failed: exit code 7" for the first of them that is over and not done, "after run X,
/// running" for the first that is not over; "" when all are done.
std::string describe_predecessors(std::span<const std::string> folders);

}  // namespace stoker::launch
