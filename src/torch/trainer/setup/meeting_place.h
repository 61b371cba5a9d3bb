// Where and how this rank meets the others, from the job's words and its environment. Used by the trainer and
// by programs of others (session.h). No libtorch. Thread-safe: no state.
#pragma once

#include "job/job.h"
#include "torch/rendezvous.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

Rendezvous rendezvous(const RankEnvironment& environment, const job::Timeouts& timeouts);
/// With the job's choice of how ranks talk. REQUIRES: job.train.
Rendezvous rendezvous(const RankEnvironment& environment, const job::Job& job);

}  // namespace stoker::torch
