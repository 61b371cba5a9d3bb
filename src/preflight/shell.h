// Checks of the submitting shell: its limits, and the ports for the rendezvous. Internal to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"
#include "preflight/preflight.h"

namespace stoker::preflight {

/// The ports for the rendezvous: the variables of the site, and a fixed MASTER_PORT.
void check_ports(const job::Job& job, const HostContext& host, Notes& notes);
/// Limits of this shell, which sbatch passes to the job.
void check_limits(const HostContext& host, Notes& notes);

}  // namespace stoker::preflight
