// Reads the traces of a run's attempts. For facts.cc only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// trace-*.json of the last attempt that has such files.
void read_traces(const std::vector<AttemptSource>& attempts, RunFacts& facts);

}  // namespace stoker::report
