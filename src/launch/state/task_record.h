// The two files of a task: tasks/<number>.log with its output, and tasks/<number>.jsonl with its start and
// end times and exit status. Each attempt of the task appends to both. Format: docs/formats/array.md.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/state/history.h"
#include "record/events.h"
#include "record/run_events.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

Path tasks_folder(const record::RunFolder& run);
Path task_log(const record::RunFolder& run, std::uint32_t task);
Path task_events(const record::RunFolder& run, std::uint32_t task);

/// Written by the job that runs the task.
struct TaskStarted {
  int attempt = 0;  ///< of the array's run
  std::string host;
  std::string scheduler_job;          ///< "812_17"
  std::string run;                    ///< id of a separate run in tasks/, "" for a single process
  std::uint32_t link = 0;             ///< of the task's chain, from 1; 0: no chain
  CheckpointStamp started_from = {};  ///< for a link of a chain
};
struct TaskEnded {
  int attempt = 0;
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::string reason;
  bool will_continue = false;  ///< in the next link of its chain
};
Status write_task_event(record::EventWriter& out, const TaskStarted& event);
Status write_task_event(record::EventWriter& out, const TaskEnded& event);

enum class TaskState { waiting, running, done, failed, stopped };

/// The state of a task by its records.
struct TaskRecord {
  TaskState state = TaskState::waiting;
  int starts = 0;      ///< in the run's last attempt; in a chain since the last link ended
  int attempt = 0;     ///< the run's attempt that started it last; 0: never
  double started = 0;  ///< start of that attempt, Unix seconds
  double ended = 0;
  int exit_code = 0;
  std::string reason;
  std::string host;
  std::string run;               ///< id of a separate run in tasks/; "" for a single process
  CheckpointStamp started_from;  ///< for a link of a chain
};
/// `attempt`: the run's last attempt. A chosen task that has not started in it is waiting, whatever earlier
/// records contain. Missing and damaged files count as no records.
TaskRecord read_task(const record::RunFolder& run, std::uint32_t task, int attempt, bool is_chosen);

/// The ended links of a task's chain in this attempt of the run, in order.
std::vector<PastAttempt> links_of_task(const record::RunFolder& run, std::uint32_t task, int attempt);

}  // namespace stoker::launch
