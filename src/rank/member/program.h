// What a `stoker rank` executes once all have come: the rank's command, or on a node of torchrun that, which
// in turn starts a `stoker rank` for each of the node's ranks. Values; no state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "rank/environment.h"
#include "rank/member/invitation.h"

namespace stoker::rank {

struct Program {
  std::vector<std::string> argv;
  Environment environment;
};

/// Invalid when this rank cannot have what the job gives it: its share of a GPU. Unavailable when the
/// variable that chooses gloo's or NCCL's interface names none of this host. `base` is this process's
/// environment.
Status check_program(const Invitation& invitation, const Environment& base);

/// What this process executes for the job's `command`; `own` is the `stoker` executable.
Program program_of(const Invitation& invitation, const std::vector<std::string>& command,
                   const Rendezvous& rendezvous, const Environment& base, const Path& own);

}  // namespace stoker::rank
