// stoker-train's command line: arguments, environment and job to an exit code. Used by train_main.cc.
#pragma once

#include <string>
#include <vector>

#include "torch/trainer/training.h"

namespace stoker::torch {

/// Runs the command with these arguments in this process's environment. Blocks until the training ends.
/// Returns the exit code (docs/exit-codes.md).
int run_command_line(const std::vector<std::string>& arguments, Voice& voice);

}  // namespace stoker::torch
