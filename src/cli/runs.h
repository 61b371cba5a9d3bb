// What the commands that take a RUN share: where runs are, how one is named on the command line.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/arguments.h"
#include "record/run_folder.h"

namespace stoker::cli {

/// RUN and --runs of a command.
struct RunChoice {
  std::string run = "last";
  std::string runs = "runs";
};

/// Declares the positional RUN (`last` if left out) and the option --runs.
void add_run_choice(Arguments& arguments, RunChoice* choice);
/// The run that was chosen.
Result<record::RunFolder> find_run(const RunChoice& choice);
/// Attempt `number` of a run, or the last one if it is 0. NotFound names the attempts there are.
Result<record::Attempt> find_attempt(const record::RunFolder& run, std::int64_t number);

}  // namespace stoker::cli
