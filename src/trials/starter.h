// Starts, resumes and stops the runs of trials: job_starter.h in the queue, local_starter.h here. Belongs to
// one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/status/life.h"
#include "record/run_folder.h"
#include "stoker/status.h"
#include "sweep/file/trial_plan.h"
#include "sweep/study/study.h"
#include "trials/trial_runs.h"

namespace stoker::trials {

/// What the runs of all trials have in common.
struct TrialJob {
  Path file;  ///< job file or batch script
  bool is_script = false;
  sweep::TrialPlan plan;
  Path runs;                       ///< folder of the runs, absolute
  std::string study;               ///< its name
  std::vector<std::string> typed;  ///< the command line
  Path stoker;                     ///< this executable
};

class TrialStarter {
 public:
  virtual ~TrialStarter() = default;

  /// Starts the run of a trial, and returns it if it exists already. Unavailable and Timeout may pass.
  virtual Result<std::optional<record::RunFolder>> start(TrialAttempt trial,
                                                         const sweep::Proposal& proposal) = 0;
  /// Continues an ended run, from its checkpoint if it has one. Errors as of start().
  virtual Status resume(TrialAttempt trial, const record::RunFolder& run, const launch::RunLife& life) = 0;
  /// Asks the process here that runs the trial to end. False without one: the run is then cancelled.
  virtual bool stop(TrialAttempt trial) = 0;
  /// Whether start() or resume() is still at work on the trial.
  virtual bool is_starting(TrialAttempt trial) = 0;
  /// Why the process that was to start the run ended without one.
  virtual std::optional<std::string> failure(TrialAttempt trial) = 0;
  /// Ends everything that does not live on without this process, and waits for it.
  virtual void shut_down(Duration grace) = 0;
};

}  // namespace stoker::trials
