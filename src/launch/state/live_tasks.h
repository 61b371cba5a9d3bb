// The tasks of an array for `stoker logs` and `stoker top`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/state/array_file.h"
#include "launch/state/task_record.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The current state of one task.
struct LiveTask {
  std::uint32_t number = 0;
  TaskRecord record;
  std::string last_line;  ///< its last line of output; "" without output
};

/// Task `number` of the array in this attempt, without its last line. NotFound lists the valid numbers.
Result<LiveTask> find_task(const record::RunFolder& run, const record::Attempt& attempt, std::int64_t number);

/// The running tasks by their records, in order, at most `most`. Reads one small file per task of the array,
/// and the end of each running task's log.
std::vector<LiveTask> running_tasks(const record::RunFolder& run, const record::Attempt& attempt,
                                    std::size_t most);

/// The separate run of a task; nothing for a task with a single process.
std::optional<record::RunFolder> run_of_task(const record::RunFolder& run, const LiveTask& task);

/// The last nonblank line near the end of a file; "" without one.
std::string last_line_of(const Path& log);

}  // namespace stoker::launch
