// Converts sbatch options to resources, slurm, chain or array. Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "script_lint/draft/draft.h"
#include "script_lint/draft/draft_internal.h"
#include "script_lint/draft/work.h"
#include "script_lint/script.h"

namespace stoker::script_lint::draft {

/// Converts the sbatch options.
void convert_options(const Script& script, const Work& work, const std::string& stem, JobFileDraft& job_file,
                     std::vector<DraftFile>& files);

}  // namespace stoker::script_lint::draft
