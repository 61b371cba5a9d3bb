// Batch scripts of people's own: the same way into the queue as for a job file, with a run folder, records
// and logs around a script that notices nothing of it. Used by `stoker submit SCRIPT`, and by `stoker run` on
// the compute node. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "job/job.h"
#include "job/site/judge.h"
#include "launch/submit.h"
#include "record/run_folder.h"
#include "slurm/allocation.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/own_script.h"

namespace stoker::launch {

/// What was asked for.
struct ScriptRequest {
  Path script;                         ///< as typed
  std::vector<std::string> arguments;  ///< of the script
  std::vector<std::string> options;    ///< for sbatch, one an entry, which win over the script's own lines
  std::vector<std::string> set;        ///< "name=...", "record.directory=..." and "site=..." alone
  std::vector<std::string> typed;      ///< the command line
  Path stoker;                         ///< this executable
  Path directory;                      ///< absolute; where sbatch is called
};

/// A script that may be submitted.
struct PlannedScript {
  ScriptRequest request;
  job::Job job;                              ///< of the run: the script and its arguments as its command
  std::string text;                          ///< of the script
  slurm::OwnScript script;                   ///< what sbatch sees in it
  int tasks = 1;                             ///< of its array
  std::optional<record::RunFolder> resumed;  ///< submitted as the next attempt of this run
  std::vector<Path>
      log_folders;  ///< that are not there yet, and without which the job would end without a word
};

/// Reads the script and refuses what can be refused without a scheduler. Writes nothing.
Result<PlannedScript> plan_script(ScriptRequest request);
/// The same for a script that was read already, as a run with this job.
Result<PlannedScript> plan_text(ScriptRequest request, job::Job job, std::string text);

/// The option of that long name in the script's own lines, or in those of --sbatch, which win.
std::optional<job::GivenOption> given_option(const PlannedScript& plan, std::string_view name);

/// What the script asks of the site: --sbatch wins over the script's own lines, as with sbatch.
job::SiteRequest site_request(const PlannedScript& plan, const slurm::Lookup& environment);

/// The batch script for an attempt: `attempt` is where its folder is or will be.
Result<std::string> wrapped_script(const PlannedScript& plan, const record::Attempt& attempt,
                                   const std::string& run_id);

/// Makes the log folders, the run (or the next attempt of the one that is resumed), with a copy of the
/// script, and submits it. Errors as of submit; a refusal names the line of the script.
Result<Submission> submit_script(const PlannedScript& plan, slurm::Scheduler& scheduler, Deadline deadline);

/// Whether an attempt's folder is that of a script, which `run_script` starts.
bool holds_script(const Path& attempt_folder);
/// The copy of the script in an attempt's folder.
Path script_of(const record::Attempt& attempt);

/// On the compute node: runs the script of the attempt to its end and records it, in the next attempt when
/// Slurm has started the job again. An array's tasks record in one attempt.
Result<Exit> run_script(const Path& attempt_folder);

}  // namespace stoker::launch
