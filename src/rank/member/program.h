// What a `stoker rank` executes after all ranks have joined: the rank's command, or on a node torchrun, which
// starts a `stoker rank` for each of the node's ranks. Values; no state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "rank/environment.h"
#include "rank/member/rank_config.h"
#include "stoker/status.h"

namespace stoker::rank {

struct Program {
  std::vector<std::string> argv;
  Environment environment;
};

/// Invalid when the job's share of a GPU is unavailable. Unavailable when gloo's or NCCL's variable names no
/// interface of this host. `base` is this process's environment.
Status check_program(const RankConfig& config, const Environment& base);

/// The program for the job's `command`; `own` is the `stoker` executable.
Program program_of(const RankConfig& config, const std::vector<std::string>& command,
                   const Rendezvous& rendezvous, const Environment& base, const Path& own);

}  // namespace stoker::rank
