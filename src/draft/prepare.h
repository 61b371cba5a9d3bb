// Converts the setup part of a script: modules, environments, variables, staging. Internal to this folder.
#pragma once

#include "draft/draft_internal.h"
#include "draft/words.h"

namespace stoker::draft {

/// Converts the unit to modules, environment or staging. Returns false and leaves the draft unchanged if any
/// part does not convert.
bool convert_unit(const WordExpander& words, const Unit& unit, JobFileDraft& job_file);

}  // namespace stoker::draft
