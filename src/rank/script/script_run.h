// A batch script of people's own, run by the process that Slurm started in its place: the script finds what
// it would have found under Slurm alone, and how it began and ended is recorded. Main thread only: signals of
// the whole process are taken over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "record/run_folder.h"

namespace stoker::rank {

/// What to run, and where to record it.
struct ScriptRun {
  record::Attempt attempt;
  bool is_array = false;
  int task = 0;                      ///< of an array: its index, which stands for the node in records
  std::vector<std::string> command;  ///< the script and its arguments
  Environment environment;
  std::string scheduler_job;
  std::function<void()> beside;  ///< work that must not delay the script: runs in a process of its own
};

/// Runs it to its end. Standard input, output and error are Slurm's own and are not touched: where the output
/// goes, the attempt gets links to (rank-<task>.log, slurm.log). Every signal that comes to this process
/// alone goes on to the script, as if it were the batch script itself. An error when it could not be started.
Result<Exit> run_script(const ScriptRun& run);

}  // namespace stoker::rank
