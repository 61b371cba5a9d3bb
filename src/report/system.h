// Reads the machine samples of a run's attempts. For facts.cc only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// system-*.csv of all nodes.
void read_system(const std::vector<AttemptSource>& attempts, RunFacts& facts);

}  // namespace stoker::report
