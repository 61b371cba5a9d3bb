// `stoker logs` for an array: the logs of all tasks or of one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cli/output.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::cli {

struct TaskLogs {
  record::RunFolder run;
  record::Attempt attempt;           ///< the last one
  std::optional<std::int64_t> task;  ///< empty: all
  bool is_following = false;         ///< until the task, or the array, ends
  std::function<bool(std::string_view line)> wants;
};

/// Prints the logs: of all tasks with the prefix "[task]", of one task unchanged.
Status show_task_logs(const TaskLogs& what, Output& out);

}  // namespace stoker::cli
