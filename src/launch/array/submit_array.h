// From a job file with a table of tasks to one array of jobs in the queue. One run folder, one call of sbatch
// (several where the cluster's arrays are smaller), two files a task. Used by `stoker submit` and, for what
// is not done yet, by `stoker resume`. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "launch/array/array_file.h"
#include "launch/submit.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// How many tasks share a job.
struct Bundle {
  std::uint32_t size = 1;
  std::string why;  ///< "1m is short for a job of its own"; "" when it was asked for, or is 1
};
Bundle choose_bundle(const job::Job& job, std::size_t tasks);

/// Whether a task has ranks of its own to supervise: it then is a run of its own inside the array's folder,
/// where a single command is one process.
bool is_run_of_its_own(const job::Job& job);

/// The tasks of `request`, whose job has an array: reads the table, and every task as a job. Invalid names
/// the task that is wrong, or the limit that so many would break.
Result<ArrayFile> make_array(const Request& request);

/// What is in the queue.
struct ArraySubmission {
  record::RunFolder folder;
  record::Attempt attempt;
  std::vector<std::string> jobs;  ///< one, or several where one array cannot hold all
  std::vector<Predecessor> waits_for;
};
/// Submits the chosen tasks of `array` as the next attempt of `request.resumed`, or as a new run.
Result<ArraySubmission> submit_array(const Request& request, const ArrayFile& array,
                                     slurm::Scheduler& scheduler, Deadline deadline);

/// The batch script, for a look at it.
Result<std::string> array_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const ArrayFile& array);

/// A request to go on with what of an array is not done, with `settings` laid over all its tasks. Invalid
/// when it is still in the queue, or all is done.
struct ArrayResumption {
  Request request;
  ArrayFile array;
};
Result<ArrayResumption> resume_array(const record::RunFolder& folder, const RunLife& life,
                                     const std::vector<std::string>& settings);

}  // namespace stoker::launch
