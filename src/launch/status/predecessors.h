// The predecessors of a job (`after:`): other runs, found by job file, name or id, as Slurm dependencies.
// Used before a submission, by the job at its start, and to describe a waiting run. Thread-compatible.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "job/job.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// A run that must finish first.
struct Predecessor {
  record::RunFolder run;
  std::string dependency;  ///< "afterok:812"; "" if it is already done
};

/// The runs that `job.after` selects. An entry that ends in .yaml or .yml is a job file (relative to `base`);
/// like a bare name, it selects the newest run with its name. Any other entry is a run as on the command
/// line. Invalid when a run has failed or does not exist, Unavailable when its state is unknown. Without a
/// scheduler, the recorded state counts.
Result<std::vector<Predecessor>> find_predecessors(const job::Job& job, const Path& base,
                                                   slurm::Scheduler* scheduler, Deadline deadline);

/// "afterok:812,afterany:813"; "" when all are done.
std::string dependency_of(std::span<const Predecessor> predecessors);

/// Their folders, absolute.
std::vector<std::string> folders_of(std::span<const Predecessor> predecessors);

/// Ok when the runs in these folders are all done by their records. Waits until `deadline` for records that
/// arrive late on this host. Invalid names the unfinished run.
Status check_predecessors(std::span<const std::string> folders, Deadline deadline);

/// "after run X, which failed: exit code 7" for the first one that ended without success, "after run X,
/// running" for the first one that has not ended; "" when all are done.
std::string describe_predecessors(std::span<const std::string> folders);

}  // namespace stoker::launch
