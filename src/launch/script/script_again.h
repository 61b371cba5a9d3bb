// A run of somebody's own batch script once more, from the copy that the run has of it. Used by `stoker
// resume` and `stoker rerun`. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/life.h"
#include "launch/script/own_script.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// The newest attempt of the run that holds a script; nothing for a run of a job file.
std::optional<record::Attempt> attempt_with_script(const record::RunFolder& run);

/// The script as the next attempt of the run, with the options it was submitted with. Errors as of
/// check_can_go_on; Invalid for any setting, and for an array, of which only a part may be wanted: the cure
/// is the command that submits what is not done.
Result<PlannedScript> resume_script(const record::RunFolder& run, const RunLife& life,
                                    const std::vector<std::string>& settings, const Path& stoker);

/// The same as a run of its own.
Result<PlannedScript> rerun_script(const record::RunFolder& run, const std::vector<std::string>& settings,
                                   const Path& stoker);

/// Whether the file that was submitted reads otherwise than the run's copy now.
bool has_script_changed(const PlannedScript& plan);

/// {3, 4, 5, 9} as sbatch's --array takes it: "3-5,9".
std::string to_array(const std::vector<std::uint32_t>& tasks);

}  // namespace stoker::launch
