// Queries node and job states with Slurm's commands inside the lab. Blocking, with timeouts. Thread-safe: no
// state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "lab/lab.h"
#include "slurm/queue/job_state.h"

namespace stoker::lab::fault {

/// Runs a Slurm command as a user of the lab and returns its standard output. Unavailable with its error
/// output on a timeout or failure.
Result<std::string> run_slurm_command(const Lab& lab, std::vector<std::string> argv);

/// The node's state from sinfo: "idle", "down*", "draining".
Result<std::string> node_state(const Lab& lab, std::string_view node);
/// Waits until the node responds to Slurm; false on a timeout.
bool wait_until_responding(const Lab& lab, std::string_view node);

/// A job as listed by squeue.
struct QueuedJob {
  std::string id;          ///< raw job id, also for an array task, as in its environment
  std::string state_text;  ///< "RUNNING"
  slurm::JobState state = slurm::JobState::unknown;
  std::string partition;
  std::string nodes;  ///< compact: "n[1-2]"
  std::string limit;  ///< "10:00", "UNLIMITED"
};
/// The job, or NotFound "12: no such job in lab1", or Invalid if `text` is not a job id.
Result<QueuedJob> find_job(const Lab& lab, std::string_view text);
/// The job, if it is running; else Invalid "12: not running (COMPLETED)".
Result<QueuedJob> find_running_job(const Lab& lab, std::string_view text);

}  // namespace stoker::lab::fault
