// The profile of an attempt, from all that its folder has: step records, flight recorders, NCCL's lines in
// the logs. Used by `stoker profile`. Thread-safe: no state.
#pragma once

#include "profile/profile.h"
#include "profile/records.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::profile {

/// `run_name` is the RUN of suggested commands. NotFound if the attempt has neither step records nor
/// collectives.
Result<Profile> profile_attempt(const record::RunFolder& run, const record::Attempt& attempt,
                                const StepSelection& selection, const std::string& run_name);

}  // namespace stoker::profile
