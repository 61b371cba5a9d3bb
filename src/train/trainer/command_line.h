// Command line of stoker-train: converts arguments, environment and job to an exit code. Used by
// train_main.cc.
#pragma once

#include <string>
#include <vector>

#include "train/trainer/training.h"

namespace stoker::train {

/// Runs the command in this process's environment. Blocks until the training ends. Returns the exit code
/// (docs/exit-codes.md).
int run_command_line(const std::vector<std::string>& arguments, TrainerLog& log);

}  // namespace stoker::train
