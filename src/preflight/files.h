// Checks files of the job besides its data and program, and the versions of its data. Internal to this
// folder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "job/job.h"
#include "preflight/notes.h"
#include "record/run_folder.h"

namespace stoker::preflight {

/// Staged files, the model file, the image and the wheelhouse.
void check_files(const job::Job& job, Notes& notes);
/// Whether the data changed since the job's last run.
void check_data_version(const job::Job& job, const std::optional<record::RunFolder>& last,
                        const std::map<std::string, std::string>& versions, Notes& notes);

}  // namespace stoker::preflight
