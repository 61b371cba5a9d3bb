// Submits a job: the run folder, a prepared attempt with its batch script, and one scheduler call. Used by
// `stoker submit`, and by `stoker resume` for submitted runs. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/start/links.h"
#include "launch/start/run.h"
#include "launch/status/predecessors.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// A submitted attempt.
struct Submission {
  record::RunFolder folder;
  record::Attempt attempt;
  std::string scheduler_job;
  Links links;                            ///< of a chain
  std::vector<Predecessor> predecessors;  ///< runs that must finish first
  std::vector<std::string> notes = {};    ///< files that a snapshot leaves out
};

/// Removes a run whose submission was refused: nothing of it can run or be resumed. The folder of runs stays:
/// it may be a link, or have special permissions.
void discard_run(const record::RunFolder& folder);

/// A queue entry for an attempt.
struct QueueEntry {
  std::string script;
  std::string comment;                    ///< identifies its job; "" when the script has another comment
  int tasks = 1;                          ///< of an array
  int links = 0;                          ///< of a chain
  std::vector<std::string> after;         ///< folders of its predecessors
  std::function<Status(Status)> explain;  ///< adds the responsible setting to a refusal
  bool is_new_run = false;                ///< a refusal removes the run
};
/// Writes the script into the attempt's folder and calls the scheduler once, with an event before and after.
/// After Timeout, the job may still be in the queue. A refusal leaves no new run, and is an event of an older
/// one.
Result<Submission> enqueue(const record::RunFolder& folder, const record::Attempt& attempt,
                           const QueueEntry& entry, slurm::Scheduler& scheduler, Deadline deadline);

/// The comment of an attempt's job.
std::string comment_of(const std::string& run_id, int attempt);

/// Refuses what can be refused without a scheduler: missing folders, a missing stoker-train, values that a
/// batch script cannot express.
Status check_submission(const Request& request);

/// The parts of a batch script that do not come from its job: the number and order of jobs.
struct JobOrder {
  std::string array;         ///< "1-4%1"; "" for a single job
  std::string dependency;    ///< "afterok:812"
  std::uint32_t bundle = 1;  ///< tasks per job, run one after the other
  std::uint32_t from = 0;    ///< earlier jobs of the same array, in another script
  std::uint32_t link = 1;    ///< of the chains of the array's tasks
};
/// Pass JobOrder::from and JobOrder::link to `stoker run` in a job.
inline constexpr std::string_view kArrayFromVariable = "STOKER_ARRAY_FROM";
inline constexpr std::string_view kArrayLinkVariable = "STOKER_ARRAY_LINK";
/// The parts of a batch script that come from its job: where it runs, its resources and its time limit.
slurm::BatchScript job_script(const job::Job& job);
/// The order of a chain with these links after these runs.
JobOrder chain_order(const Links& links, std::span<const Predecessor> predecessors);

/// The batch script of an attempt of `request`: `attempt` is its current or future folder.
Result<std::string> batch_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const JobOrder& order = {});

/// Adds the responsible keys of the job file to an error of sbatch.
Status with_key(Status refused, const job::Job& job);

/// The links of a chain for this request.
Links links_of(const Request& request);

/// The base of relative job files in `after`.
Path job_file_directory(const Request& request);

/// Creates the run (or the next attempt of `request.resumed`) and submits it. Later errors are recorded in
/// the run folder. After Timeout, the job may still be in the queue: query_life finds it.
Result<Submission> submit(const Request& request, slurm::Scheduler& scheduler, Deadline deadline);

/// The request of a batch script's `stoker run <attempt folder>`.
Result<Request> prepared_request(const Path& attempt_folder);

/// `environment` for scheduler commands, without variables that would override the job file.
Environment scheduler_environment(const job::Job& job, Environment environment);

}  // namespace stoker::launch
