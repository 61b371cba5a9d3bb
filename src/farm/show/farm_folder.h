// The folder of a farm: its name, and the command template that its list was used with. Used by `stoker
// farm`. Thread-safe: no state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "farm/ledger/farm_state.h"
#include "stoker/status.h"

namespace stoker::farm {

/// "runs/tasks.txt" has its farm in "tasks.farm", in the working directory.
Path farm_folder(const Path& tasks);
/// Stores the command template, for commands that show the farm. REQUIRES: prepare_farm().
Status save_command(const Path& folder, const std::vector<std::string>& command);
/// The stored template; empty without one.
Result<std::vector<std::string>> saved_command(const Path& folder);

/// Passes the output of the last attempt of a task on, in parts. NotFound if its file is gone.
Status read_output(const FarmState& state, TaskIndex task, const std::function<void(std::string_view)>& sink);

/// How fast tasks end now on all workers, per second; 0 if nothing runs.
double tasks_per_second(const FarmState& state);
/// "500 done, 3 failed (1 out of memory), 32 on workers, 465 waiting".
std::string counts_text(const TaskCounts& counts);

}  // namespace stoker::farm
