// The process of one rank, `stoker rank -- COMMAND`: joins the run, starts the command with its environment,
// forwards its output and writes it to the log, monitors it, and ends it with all its descendants. On a node
// of torchrun it does the same for torchrun. One thread, one poll loop; it changes the process (signal mask,
// subreaper), so it is the whole program.
#pragma once

#include <string>
#include <vector>

#include "stoker/status.h"

namespace stoker::rank {

struct RankRunnerOptions {
  std::vector<std::string> command;
  int out_fd = 1;
  int err_fd = 2;
};

/// Runs the command as a rank of the run in STOKER_WORLD. Returns the exit code: the command's own, 128 +
/// signal, 127 or 126 when it could not be executed. Fails when it could not join the run or was refused.
Result<int> run_rank(const RankRunnerOptions& options);

}  // namespace stoker::rank
