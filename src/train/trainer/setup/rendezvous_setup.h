// Rendezvous options from the job and the environment. Used by the trainer and by Session. No libtorch.
// Thread-safe: no state.
#pragma once

#include "job/job.h"
#include "stoker/rendezvous_options.h"
#include "train/trainer/environment.h"

namespace stoker::train {

RendezvousOptions rendezvous_options(const RankEnvironment& environment, const job::Timeouts& timeouts);
/// Also sets the job's transport. REQUIRES: job.train.
RendezvousOptions rendezvous_options(const RankEnvironment& environment, const job::Job& job);

}  // namespace stoker::train
