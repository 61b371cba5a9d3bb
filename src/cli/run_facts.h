// The facts of runs for the commands that report on them.
#pragma once

#include <string>
#include <vector>

#include "record/run_folder.h"
#include "report/facts.h"

namespace stoker::cli {

/// In the same order; the state of each run is judged with the scheduler, as by `stoker status`.
std::vector<report::RunFacts> collect_judged_facts(const std::vector<record::RunFolder>& runs);

}  // namespace stoker::cli
