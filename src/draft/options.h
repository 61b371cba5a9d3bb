// Converts sbatch options to resources, slurm, chain or array. Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "draft/draft.h"
#include "draft/draft_internal.h"
#include "draft/work.h"
#include "script_lint/script.h"

namespace stoker::draft {

/// Converts the sbatch options.
void convert_options(const Script& script, const Work& work, const std::string& stem, JobFileDraft& job_file,
                     std::vector<DraftFile>& files);

}  // namespace stoker::draft
