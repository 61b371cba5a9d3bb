// From a job to a job in the queue: the run folder, a prepared attempt with its batch script, one call of the
// scheduler. Used by `stoker submit`, and by `stoker resume` for runs that live in the queue.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "launch/next/after.h"
#include "launch/next/links.h"
#include "launch/run.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {

/// An attempt in the queue.
struct Submission {
  record::RunFolder folder;
  record::Attempt attempt;
  std::string scheduler_job;
  Links links;                         ///< of a chain
  std::vector<Predecessor> waits_for;  ///< runs that have to be done first
};

/// What goes into the queue for an attempt.
struct QueueEntry {
  std::string script;
  std::string comment;                    ///< by which its job is found; "" when the script has another one
  int tasks = 1;                          ///< of an array
  int links = 0;                          ///< of a chain
  std::vector<std::string> after;         ///< run folders that it waits for
  std::function<Status(Status)> explain;  ///< adds to a refusal what the user can change
};
/// Writes the script into the attempt's folder and calls the scheduler once, with an event before and one
/// after. After Timeout the job may be in the queue all the same.
Result<Submission> enqueue(const record::RunFolder& folder, const record::Attempt& attempt,
                           const QueueEntry& entry, slurm::Scheduler& scheduler, Deadline deadline);

/// The comment of an attempt's job.
std::string comment_of(const std::string& run_id, int attempt);

/// Refuses what can be refused without a scheduler: folders that are not there, a missing stoker-train,
/// values that no batch script can hold.
Status check_submission(const Request& request);

/// What a batch script says beside its job: how many jobs it is, and in which order they come.
struct JobOrder {
  std::string array;         ///< "1-4%1"; "" for a single job
  std::string dependency;    ///< "afterok:812"
  std::uint32_t bundle = 1;  ///< so many tasks one after the other in each job
  std::uint32_t from = 0;    ///< jobs of the same array that another script starts before these
  std::uint32_t link = 1;    ///< of the chains that the array's tasks are
};
/// By which `stoker run` in a job is told JobOrder::from and JobOrder::link.
inline constexpr std::string_view kArrayFromVariable = "STOKER_ARRAY_FROM";
inline constexpr std::string_view kArrayLinkVariable = "STOKER_ARRAY_LINK";
/// The order of a chain of so many links behind these runs.
JobOrder order_of(const Links& links, std::span<const Predecessor> predecessors);

/// The batch script of an attempt of `request`: `attempt` is where its folder is or will be.
Result<std::string> batch_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const JobOrder& order = {});

/// A refusal of sbatch with the keys of the job file that decided.
Status with_key(Status refused, const job::Job& job);

/// The links that a chain of this request gets.
Links links_of(const Request& request);

/// Where relative job files of `after` start.
Path folder_of_job_file(const Request& request);

/// Makes the run (or the next attempt of `request.resumed`) and submits it. An error after the run folder was
/// made is recorded in it. After Timeout the job may be in the queue all the same: look_at finds it.
Result<Submission> submit(const Request& request, slurm::Scheduler& scheduler, Deadline deadline);

/// Whether the run lives in a queue: an attempt of it was submitted.
bool was_submitted(const record::RunFolder& folder);

/// The request that a batch script's `stoker run <attempt folder>` means.
Result<Request> prepared_request(const Path& attempt_folder);

/// `environment` for a scheduler's commands, without variables that would win over what the job file says.
Environment scheduler_environment(const job::Job& job, Environment environment);

}  // namespace stoker::launch
