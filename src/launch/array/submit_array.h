// Submits a job file with a table of tasks as one array. Needs one run folder, one call of sbatch (several on
// clusters with smaller arrays), and two files per task. Used by `stoker submit`, and by `stoker resume` for
// unfinished tasks. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/start/submit.h"
#include "launch/state/array_file.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// The number of tasks that share a job.
struct Bundle {
  std::uint32_t size = 1;
  std::string why;  ///< "1m is short for a separate job"; "" for 1 or an explicit value
};
Bundle choose_bundle(const job::Job& job, std::size_t tasks);

/// Whether a task needs a supervisor for its ranks. It then is a separate run inside the array's folder;
/// otherwise it is one process.
bool needs_own_run(const job::Job& job);

/// The tasks of `request`, whose job has an array. Reads the table, and every task as a job. Invalid names
/// the invalid task or the exceeded limit.
Result<TaskArrayFile> make_array(const Request& request);

/// The submitted jobs.
struct ArraySubmission {
  record::RunFolder folder;
  record::Attempt attempt;
  std::vector<std::string> jobs;  ///< several if one array cannot hold all tasks
  std::vector<Predecessor> predecessors;
};
/// Submits the chosen tasks of `array` as the next attempt of `request.resumed`, or as a new run.
Result<ArraySubmission> submit_array(const Request& request, const TaskArrayFile& array,
                                     slurm::Scheduler& scheduler, Deadline deadline);

/// The batch script, for display.
Result<std::string> array_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const TaskArrayFile& array);

/// A request that resumes the unfinished tasks of an array, with `settings` applied to all tasks. Invalid
/// when the array is still queued, or done.
struct ArrayResumption {
  Request request;
  TaskArrayFile array;
};
Result<ArrayResumption> resume_array(const record::RunFolder& folder, const RunLife& life,
                                     const std::vector<std::string>& settings);

}  // namespace stoker::launch
