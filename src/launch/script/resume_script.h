// Resubmits a user script from the run's copy. Used by `stoker resume` and `stoker rerun`. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/script/user_script.h"
#include "launch/status/life.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The newest attempt of the run with a script; nothing for a run of a job file.
std::optional<record::Attempt> attempt_with_script(const record::RunFolder& run);

/// The script as the next attempt of the run, with its original options. Errors of check_resumable. Invalid
/// for any setting, and for an array: the cure is the command that submits the unfinished tasks.
Result<PlannedScript> resume_script(const record::RunFolder& run, const RunLife& life,
                                    const std::vector<std::string>& settings, const Path& stoker);

/// The same as a new run.
Result<PlannedScript> rerun_script(const record::RunFolder& run, const std::vector<std::string>& settings,
                                   const Path& stoker);

/// Whether the submitted file differs from the run's copy now.
bool has_script_changed(const PlannedScript& plan);

/// {3, 4, 5, 9} for sbatch's --array: "3-5,9".
std::string to_array(const std::vector<std::uint32_t>& tasks);

}  // namespace stoker::launch
