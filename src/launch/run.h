// One run from its job to its ending: the plan, the run folder with its capsule, the ranks, and what to say
// in the end. Used by `stoker run` and `stoker resume`. Main thread only: the ranks' supervisor changes the
// process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "job/job.h"
#include "launch/life.h"
#include "rank/plan.h"
#include "rank/verdict.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// What the command was asked to do.
struct Request {
  job::Job job;
  std::string job_file;            ///< as typed
  std::vector<std::string> typed;  ///< the command line
  Path stoker;                     ///< this executable; stoker-train is looked for beside it
  int out_fd = 1;                  ///< where rank 0's standard output goes
  int err_fd = 2;
  std::optional<record::RunFolder> resumed;  ///< go on with this run instead of making one
  std::optional<record::Attempt> prepared;   ///< begin this attempt of it, which was submitted
};

/// All that is decided before anything is written.
struct Prepared {
  rank::Plan plan;
  std::vector<std::string> command;  ///< of every rank; `stoker-train --job ...` for a `train` job
  Environment environment;           ///< what the ranks inherit, without the run's own part
};
/// Decides it, and looks whether what the job names is there: datasets, virtual environment, working
/// directory, stoker-train.
Result<Prepared> prepare(const Request& request);

/// A run that has come to its end.
struct RunResult {
  record::RunFolder folder;
  record::Attempt attempt;
  rank::Ending ending;
  std::string checkpoint;  ///< "last checkpoint: step 100, valid", "no checkpoint yet"
  bool can_resume = false;
};

/// Called once the run folder is there and before the ranks start.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run_exists(const record::RunFolder& folder, const record::Attempt& attempt,
                          const std::string& resumed_from) = 0;
};

/// Makes the run (or the next attempt of `request.resumed`), runs it and returns when no process of it is
/// left. An error when it could not begin.
Result<RunResult> run(const Request& request, const Prepared& prepared, Observer& observer);

/// The job and the folder to go on with; `life` is how the run is now. Invalid when it is done already, still
/// running or in the queue, or when a setting or a dataset would make another run of it; Unavailable when how
/// it is cannot be told.
Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings);

}  // namespace stoker::launch
