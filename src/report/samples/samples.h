// Reads the samples of all nodes, each file once. For facts.cc only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// RunFacts::system, gpus, nodes and efficiency, from system-*.csv and the events of all attempts.
void read_samples(const std::vector<AttemptSource>& attempts, RunFacts& facts);

}  // namespace stoker::report
