// The user's own batch scripts: submitted like a job file, with a run folder, records and logs, while the
// script itself runs unchanged. Used by `stoker submit SCRIPT`, and by `stoker run` on the compute node.
// Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"
#include "job/site/site_check.h"
#include "launch/start/submit.h"
#include "record/run_folder.h"
#include "slurm/allocation.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/user_script.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// A request to submit a script.
struct ScriptRequest {
  Path script;                         ///< as typed
  std::vector<std::string> arguments;  ///< of the script
  std::vector<std::string> options;    ///< for sbatch, one per entry; they override the script's own lines
  std::vector<std::string> set;        ///< only "name=...", "record.directory=..." and "site=..."
  std::vector<std::string> typed;      ///< the command line
  Path stoker;                         ///< this executable
  Path directory;                      ///< absolute; the working directory of sbatch
};

/// A validated script.
struct PlannedScript {
  ScriptRequest request;
  job::Job job;                              ///< of the run: its command is the script and its arguments
  std::string text;                          ///< of the script
  slurm::UserScript script;                  ///< the script as sbatch parses it
  int tasks = 1;                             ///< of its array
  std::optional<record::RunFolder> resumed;  ///< submit it as the next attempt of this run
  std::vector<Path> log_folders;  ///< missing folders, without which Slurm would kill the job silently
};

/// Reads the script and refuses what can be refused without a scheduler. Writes nothing.
Result<PlannedScript> plan_script(ScriptRequest request);
/// The same for text that is already loaded, as a run with this job.
Result<PlannedScript> plan_text(ScriptRequest request, job::Job job, std::string text);

/// The option with that long name in the script's lines, or in --sbatch, which overrides them.
std::optional<job::GivenOption> given_option(const PlannedScript& plan, std::string_view name);

/// The script's requests to the site: --sbatch overrides the script's lines, as for sbatch.
job::SiteRequest site_request(const PlannedScript& plan, const slurm::Lookup& environment);

/// The batch script of an attempt: `attempt` is its current or future folder.
Result<std::string> wrapped_script(const PlannedScript& plan, const record::Attempt& attempt,
                                   const std::string& run_id);

/// Creates the log folders and the run (or the next attempt of a resumed one) with a copy of the script, and
/// submits it. Errors as for submit; a refusal names the line of the script.
Result<Submission> submit_script(const PlannedScript& plan, slurm::Scheduler& scheduler, Deadline deadline);

/// Whether the attempt's folder holds a script for `run_script`.
bool has_script(const Path& attempt_folder);
/// The copy of the script in an attempt's folder.
Path script_of(const record::Attempt& attempt);

/// On the compute node: runs the script of the attempt to its end and records it. After a requeue, it records
/// the next attempt. All tasks of an array record in one attempt.
Result<Exit> run_script(const Path& attempt_folder);

}  // namespace stoker::launch
