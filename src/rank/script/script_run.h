// Runs a user script in place of the batch shell: the script finds the same environment as under plain Slurm,
// and its start and exit are recorded. Main thread only: handles the signals of the whole process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/process.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::rank {

/// The script to run, and where to record it.
struct ScriptRun {
  record::Attempt attempt;
  bool is_array = false;
  int task = 0;                      ///< of an array: its index, recorded as the node
  std::vector<std::string> command;  ///< the script and its arguments
  Environment environment;
  std::string scheduler_job;
  std::function<void()> background_task;  ///< work that must not delay the script: runs in a separate process
};

/// Runs it to its end. Standard input, output and error are Slurm's own and remain unchanged; the attempt
/// gets links to the output (rank-<task>.log, slurm.log). Forwards every signal for this process alone to the
/// script, as if it were the batch script. Fails when the script could not be started.
Result<Exit> run_script(const ScriptRun& run);

}  // namespace stoker::rank
