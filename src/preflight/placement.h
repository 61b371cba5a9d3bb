// Forecasts what copies of datasets on the nodes' disks cost and gain. Internal to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

/// A fact for each dataset with `place`, by the function that decides at the start of the job, with rates
/// that are measured on this host, and the quota of the site's caches; a finding where a copy does not pay.
/// Takes about two seconds per dataset with `place`, no time without.
void check_placement(const job::Job& job, const HostContext& host, Notes& notes);

/// A fact with the size of the files in `stage`, and how long their copy takes. Takes up to four seconds.
void check_staged_files(const job::Job& job, Notes& notes);

}  // namespace stoker::preflight
