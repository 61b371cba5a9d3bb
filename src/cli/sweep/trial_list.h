// Trials as a table on standard output. Used by the commands of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "sweep/study/study.h"

namespace stoker::cli {

class Output;

using TrialPointers = std::vector<const sweep::StudyTrial*>;

/// Prints one row for each trial.
void print_trials(const sweep::Study& study, const TrialPointers& trials, Output& out);

/// Keeps the first `most`, or all for 0.
void limit_trials(TrialPointers& trials, std::int64_t most);

}  // namespace stoker::cli
