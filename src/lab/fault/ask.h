// What the faults ask of Slurm: nodes' and jobs' states, by its own commands inside the lab. Blocking, with
// deadlines of their own. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "lab/lab.h"
#include "slurm/queue/job_state.h"

namespace stoker::lab::fault {

/// Runs one of Slurm's commands as a user of the lab would; its standard output. Unavailable when there is no
/// answer in time or it fails, with what it said.
Result<std::string> ask_slurm(const Lab& lab, std::vector<std::string> argv);

/// Its state as sinfo writes it: "idle", "down*", "draining".
Result<std::string> node_state(const Lab& lab, std::string_view node);
/// Waits until Slurm hears from the node again; whether it did in time.
bool wait_until_heard(const Lab& lab, std::string_view node);

/// A job as squeue has it.
struct JobView {
  std::string id;    ///< raw: of an array task the job's own number, as its environment has it
  std::string word;  ///< the state as written: "RUNNING"
  slurm::JobState state = slurm::JobState::unknown;
  std::string partition;
  std::string nodes;  ///< compact: "n[1-2]"
  std::string limit;  ///< "10:00", "UNLIMITED"
};
/// The job, or NotFound "12: no such job in lab1", or Invalid when `text` is no job id.
Result<JobView> find_job(const Lab& lab, std::string_view text);
/// The job, if it runs; else Invalid "12: does not run (COMPLETED)".
Result<JobView> find_running_job(const Lab& lab, std::string_view text);

}  // namespace stoker::lab::fault
