// Runs the tasks of a farm on this machine until none is left. Used by `stoker farm`, once per machine of an
// allocation. Belongs to one thread, and to one worker per process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "farm/ledger/farm_state.h"
#include "farm/run/node_resources.h"
#include "farm/run/task_process.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::farm {

/// How a task failed permanently.
struct TaskFailure {
  TaskIndex task = 0;
  std::string why;  ///< "exit code 7", "more than 4 GiB of memory"
};

/// How to run tasks.
struct WorkerOptions {
  std::size_t at_once = 0;      ///< most tasks at the same time; 0: by cores
  std::uint32_t retries = 0;    ///< retries after a failure, with twice the memory if that was short
  bool retries_failed = false;  ///< also run tasks that failed before
  bool is_pinned = false;       ///< bind tasks to their cores
  int end_signal = 15;          ///< to tasks before the end of the allocation
  Duration signal_before = std::chrono::seconds(60);  ///< so long before `end_time`
  std::optional<double> end_time;                     ///< of the allocation, Unix seconds
  std::string job;                                    ///< Slurm's id, or ""
  MachineResources machine;
  Environment environment;  ///< of the tasks, besides the variables that the worker sets
  TaskWrapper wrapper;      ///< of the tasks
  JobIsOver job_is_over;
  std::function<void(const TaskFailure&)> on_failure;
  /// About once a second: finished tasks so far, and tasks that run here.
  std::function<void(const TaskCounts&, std::size_t running)> on_progress;
};

/// What a worker did.
struct WorkerResult {
  std::uint64_t ended = 0;      ///< attempts
  std::uint64_t failed = 0;     ///< tasks
  std::optional<int> signal;    ///< SIGINT, SIGTERM or SIGHUP that ended it
  bool is_out_of_time = false;  ///< tasks are left that would not end before `end_time`
};

/// Works in the farm of `state`, whose folder exists. Every end of a task is recorded before the next task
/// starts in its place. SIGINT, SIGTERM and SIGHUP stop the tasks with SIGTERM, and after 10 s or a second
/// signal with SIGKILL; stopped tasks run again next time. Errors: a full disk, an unreadable farm; the tasks
/// are then stopped too.
Result<WorkerResult> run_worker(FarmState& state, const WorkerOptions& options);

}  // namespace stoker::farm
