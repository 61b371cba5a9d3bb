// Accounting of a lab: a private MariaDB that listens on no port, slurmdbd, and the rows that Slurm needs:
// cluster, account `lab`, this user.
#pragma once

#include "lab/lab.h"
#include "lab/make/files.h"

namespace stoker::lab {

/// Creates an empty database below lab.folder and starts mariadbd; sets `lab.database`.
Status start_database(Lab& lab, const HostInfo& host_info, Deadline deadline);
/// Starts slurmdbd, waits until it answers, and adds the rows; sets `lab.accounting`.
Status start_accounting(Lab& lab, const HostInfo& host_info, Deadline deadline);

}  // namespace stoker::lab
