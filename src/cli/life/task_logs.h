// What `stoker logs` prints of an array: the logs of its tasks, all of them or one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "cli/output.h"
#include "record/run_folder.h"

namespace stoker::cli {

struct TaskLogs {
  record::RunFolder run;
  record::Attempt attempt;           ///< the last one
  std::optional<std::int64_t> task;  ///< nothing: all
  bool is_following = false;         ///< until the task, or the array, is over
  std::function<bool(std::string_view line)> wants;
};

/// Prints them: of all tasks one after the other, each line behind its "[task]", of one as they are.
Status show_task_logs(const TaskLogs& what, Output& out);

}  // namespace stoker::cli
