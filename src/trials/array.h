// The trials of a sweep as tasks of one array: each task is a driver (driver.h) of one trial in its
// allocation, and no process runs beside them. Belongs to one thread.
//
// A task is the worker "array-<n>" of the study. A task that was preempted, requeued, killed or out of time
// leaves a running trial of a worker whose lease is free: the next task that starts, or the same one again,
// becomes that worker and continues the trial. So each trial counts once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "sweep/study/study.h"
#include "trials/driver.h"
#include "trials/job_starter.h"

namespace stoker::trials {

/// What to submit.
struct TrialArrayRequest {
  TrialJob job;
  launch::Request request;           ///< of any trial: its resources
  std::vector<std::string> command;  ///< of a task
};
/// What submit_array() did.
struct TrialArray {
  std::vector<std::string>
      known;                   ///< arrays of the study in the queue; their limit is the plan's at_once now
  std::uint64_t open = 0;      ///< tasks of these that have not ended
  std::string job;             ///< the new array; "" if the tasks of `known` suffice or nothing is left
  std::uint64_t tasks = 0;     ///< of the new array
  std::uint64_t left_out = 0;  ///< trials over the largest array of the cluster
};

/// Submits a task for each trial that is left and has none in the queue. Invalid for a study without a last
/// trial and for a job of several nodes; Exists while another process submits; errors of Scheduler::submit().
/// REQUIRES: Study::bind_folder().
Result<TrialArray> submit_array(const sweep::Study& study, const TrialArrayRequest& wanted,
                                slurm::Scheduler& scheduler, Deadline deadline);

/// A task of the array.
struct TrialArrayTask {
  std::uint64_t number = 0;    ///< in its array
  bool must_continue = false;  ///< only an unfinished trial
};
/// Opens the study once more.
using StudyOpener = std::function<Result<sweep::Study>()>;
/// The driver of a task: of an unfinished trial whose task is gone, else of a new one, or nullopt for
/// `must_continue`.
Result<std::optional<Driver>> drive_task(const StudyOpener& open, DriverOptions options, TrialArrayTask task,
                                         TrialStarter& starter, slurm::Scheduler& scheduler);

/// Whether a task has a trial without an ending; that task may be gone.
bool has_unfinished_task(const sweep::Study& study);

/// The number of tasks of a row of the queue: 1 for "812_7", 5 for "812_[3-6,9%2]"; nullopt if Slurm
/// shortened the row.
std::optional<std::uint64_t> array_tasks_of(std::string_view id);

}  // namespace stoker::trials
