// The process of one rank, `stoker rank -- COMMAND`: joins the run, starts the command with its environment,
// carries its output to the log and on, watches it, and ends it with everything below it. On a node of
// torchrun it does the same for that. One thread, one poll loop; it changes the process (signal mask,
// subreaper), so it is the whole program.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace stoker::rank {

struct MemberOptions {
  std::vector<std::string> command;
  int out_fd = 1;
  int err_fd = 2;
};

/// Runs the command as a rank of the run that STOKER_WORLD invites to. Returns the exit code: the command's
/// own, 128 + signal, 127 or 126 when it could not be executed. An error when the run could not be joined or
/// refused the rank.
Result<int> run_member(const MemberOptions& options);

}  // namespace stoker::rank
