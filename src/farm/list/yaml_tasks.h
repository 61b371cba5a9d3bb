// Tasks from a YAML list. Used by task_list.cc. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "farm/list/task_list.h"

namespace stoker::farm {

/// The tasks of a YAML list. Invalid with all mistakes: unknown keys, doubled names, circular `after`. A task
/// that needs a file which another task makes also comes after it.
Result<std::vector<TaskExtras>> parse_yaml_tasks(const std::string& name, std::string text,
                                                 const TaskNeeds& defaults);

}  // namespace stoker::farm
