// Trials as jobs in the queue: runs of a job file, or batch scripts. Belongs to one thread.
#pragma once

#include <memory>

#include "launch/start/run.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "trials/starter.h"

namespace stoker::trials {

/// The job of a trial, with its parameters; the run's name and folder are set. Errors of job::load().
Result<launch::Request> trial_request(const TrialJob& job, TrialAttempt trial,
                                      const sweep::Assignment& values);

/// The scheduler must outlive the starter.
std::unique_ptr<TrialStarter> make_job_starter(TrialJob job, sweep::Space space, slurm::Scheduler& scheduler);

}  // namespace stoker::trials
