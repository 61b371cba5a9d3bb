// The tasks of an array as `stoker logs` and `stoker top` name and show them. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/array/array_file.h"
#include "launch/array/task_record.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// One task as it is now.
struct LiveTask {
  std::uint32_t number = 0;
  TaskRecord record;
  std::string last_line;  ///< what it printed last; "" when it has printed nothing
};

/// Task `number` of the array in this attempt, without its last line. NotFound tells which there are.
Result<LiveTask> find_task(const record::RunFolder& run, const record::Attempt& attempt, std::int64_t number);

/// The tasks that run, as far as their records tell, in order; of more than `most` the first ones. Reads one
/// small file for each task of the array, and the end of the log of each that runs.
std::vector<LiveTask> running_tasks(const record::RunFolder& run, const record::Attempt& attempt,
                                    std::size_t most);

/// The run that a task has of its own; nothing for a single process.
std::optional<record::RunFolder> run_of_task(const record::RunFolder& run, const LiveTask& task);

/// The last line with something in it near the end of a file; "" without one.
std::string last_line_of(const Path& log);

}  // namespace stoker::launch
