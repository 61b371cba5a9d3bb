// Converts the setup part of a script: modules, environments, variables, staging. Internal to this folder.
#pragma once

#include "script_lint/draft/draft_internal.h"
#include "script_lint/draft/words.h"

namespace stoker::script_lint::draft {

/// Converts the unit to modules, environment or staging. Returns false and leaves the draft unchanged if any
/// part does not convert.
bool convert_unit(const WordExpander& words, const Unit& unit, JobFileDraft& job_file);

}  // namespace stoker::script_lint::draft
