// The findings about a job file or a batch script: what `check` prints, and what `submit` refuses. Called by
// check.cc and submit.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "job/job.h"
#include "preflight/preflight.h"

namespace stoker::cli {

struct Inspection {
  preflight::HostContext host;
  preflight::Preflight preflight;  ///< also missing dependencies, and violations of the site's limits
};

/// Checks the job as `stoker check JOB` does. `for_queue`: as a job that this machine only submits.
Result<Inspection> inspect_job(const job::Job& job, bool for_queue);

/// The flag --force of a command.
struct Force {
  bool is_given = false;
  std::string_view command = "stoker submit";
};

/// Findings that would lose the job as an error; if forced, prints them as notes instead.
Status refuse_lost_job(const job::Job& job, const Force& force, Output& out);

/// The same for a batch script. `options`: of `--sbatch`, which override the script's.
Status refuse_lost_script(const std::string& script, const std::vector<std::string>& options,
                          const Force& force, Output& out);

}  // namespace stoker::cli
