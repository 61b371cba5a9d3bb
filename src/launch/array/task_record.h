// The two files of a task: tasks/<number>.log, what it printed, and tasks/<number>.jsonl, when it ran and how
// it ended. Each attempt of the task adds to both. Format: docs/formats/array.md. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/next/history.h"
#include "record/events.h"
#include "record/run_events.h"
#include "record/run_folder.h"

namespace stoker::launch {

Path tasks_folder(const record::RunFolder& run);
Path task_log(const record::RunFolder& run, std::uint32_t task);
Path task_events(const record::RunFolder& run, std::uint32_t task);

/// By the job that runs the task.
struct TaskStarted {
  int attempt = 0;  ///< of the array's run
  std::string host;
  std::string scheduler_job;  ///< "812_17"
  std::string run;            ///< id of a run of its own in tasks/, "" for a single process
  std::uint32_t link = 0;     ///< of the task's chain, from 1; 0: it is none
  Mark began_with = {};       ///< of a chain's link
};
struct TaskEnded {
  int attempt = 0;
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::string reason;
  bool goes_on = false;  ///< in the next link of its chain
};
Status write_task_event(record::EventWriter& out, const TaskStarted& event);
Status write_task_event(record::EventWriter& out, const TaskEnded& event);

enum class TaskState { waiting, running, done, failed, stopped };

/// What a task's own records tell.
struct TaskRecord {
  TaskState state = TaskState::waiting;
  int starts = 0;      ///< in the run's last attempt; of a chain since its last link ended
  int attempt = 0;     ///< the run's attempt in which it was started last; 0 never
  double started = 0;  ///< then, Unix seconds
  double ended = 0;
  int exit_code = 0;
  std::string reason;
  std::string host;
  std::string run;  ///< id of a run of its own in tasks/; "" for a single process
  Mark began_with;  ///< of a chain's link
};
/// `attempt`: the run's last one. A task that it was to run and has not started yet waits, whatever came
/// before. Absent and damaged files count as silence.
TaskRecord read_task(const record::RunFolder& run, std::uint32_t task, int attempt, bool is_chosen);

/// The links of a task's chain that have ended in this attempt of the run, in order.
std::vector<PastAttempt> links_of_task(const record::RunFolder& run, std::uint32_t task, int attempt);

}  // namespace stoker::launch
