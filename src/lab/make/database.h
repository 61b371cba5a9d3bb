// Accounting of a lab: a private MariaDB that listens on no port, slurmdbd before it, and the rows that Slurm
// wants: cluster, account `lab`, this user.
#pragma once

#include "lab/lab.h"
#include "lab/make/files.h"

namespace stoker::lab {

/// Makes an empty database below lab.folder and starts mariadbd; sets `lab.database`.
Status start_database(Lab& lab, const Site& site, Deadline deadline);
/// Starts slurmdbd on it, waits until it answers, and adds the rows; sets `lab.accounting`.
Status start_accounting(Lab& lab, const Site& site, Deadline deadline);

}  // namespace stoker::lab
