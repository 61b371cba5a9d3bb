// One run from its job to its ending: the plan, the run folder with its capsule, the ranks, and what to say
// in the end. Used by `stoker run` and `stoker resume`. Main thread only: the ranks' supervisor changes the
// process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "job/job.h"
#include "launch/life.h"
#include "launch/staging/staging.h"
#include "rank/plan.h"
#include "rank/verdict.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Where a run goes on.
struct ResumePoint {
  Path step;                                         ///< a checkpoint; empty: the start
  std::vector<checkpoint::SkippedStep> passed_over;  ///< newer ones, and why each is not whole
};

/// What the command was asked to do.
struct Request {
  job::Job job;
  std::string job_file;            ///< as typed
  job::LoadOptions load;           ///< what was laid over it
  std::vector<std::string> typed;  ///< the command line
  Path stoker;                     ///< this executable; stoker-train is looked for beside it
  int out_fd = 1;                  ///< where rank 0's standard output goes
  int err_fd = 2;
  std::vector<std::string> changes;          ///< of a run that goes on: told_changes()
  std::vector<std::string> not_taken;        ///< of one, too: told_job_file()
  std::optional<record::RunFolder> resumed;  ///< go on with this run instead of making one
  std::optional<int> last_seen;              ///< its last attempt when it was seen to be over; 0: it had none
  std::optional<record::Attempt> prepared;   ///< begin this attempt of it, which was submitted
  std::optional<ResumePoint> resume_from;    ///< where to go on, when it is known already
  int links = 0;                             ///< of the chain that this job belongs to; 0 outside of one
  bool is_link_of_task = false;              ///< a task of an array, as a link of the task's own chain
};

/// All that is decided before anything is written.
struct Prepared {
  rank::Plan plan;
  std::vector<std::string> command;  ///< of every rank; `stoker-train --job ...` for a `train` job
  Environment environment;           ///< what the ranks inherit, without the run's own part
  std::vector<std::string> notes;    ///< what loading modules replaced
};
/// Decides it, and looks whether what the job names is there: datasets, virtual environment, working
/// directory, stoker-train.
Result<Prepared> prepare(const Request& request);

/// The newest valid checkpoint of the run, whoever wrote it; the start when there is none yet. Corrupt or
/// NotFound when there are checkpoints of Stoker and none is whole.
Result<ResumePoint> step_to_resume(const Request& request, const record::RunFolder& folder);

/// A run that has come to its end.
struct RunResult {
  record::RunFolder folder;
  record::Attempt attempt;
  rank::Ending ending;
  std::string checkpoint;  ///< "last checkpoint: step 100, valid", "no checkpoint yet"
  bool can_resume = false;
  std::string cure;              ///< of a cause that has one
  Status taken_back;             ///< of what `stage.back` wants
  std::vector<StagedNode> back;  ///< what was copied back, by node
};

/// Told what happens before the ranks start.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The run folder is there.
  virtual void run_exists(const record::RunFolder& folder, const record::Attempt& attempt,
                          const ResumePoint& from) = 0;
  /// What the job wants on its nodes' own disks is there.
  virtual void staged(const std::vector<StagedNode>&) {}
};

/// Makes the run (or the next attempt of `request.resumed`), runs it and returns when no process of it is
/// left. An error when it could not begin.
Result<RunResult> run(const Request& request, const Prepared& prepared, Observer& observer);

/// Invalid when a run of this life is done already, still running or in the queue; Unavailable when how it is
/// cannot be told.
Status check_can_go_on(const record::RunFolder& folder, const RunLife& life);

/// The job and the folder to go on with; `life` is how the run is now. Errors as of check_can_go_on, and
/// Invalid when a setting or a dataset would make another run of it, or a setting would change nothing.
Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings);

}  // namespace stoker::launch
