// Summarizes the samples and errors of each GPU of a run. For facts.cc only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// RunFacts::gpus, from system-*.csv and the events of all attempts. Unreadable files count as missing:
/// read_system has a note about them.
void read_gpus(const std::vector<AttemptSource>& attempts, RunFacts& facts);

}  // namespace stoker::report
