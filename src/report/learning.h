// Reads the metrics of a run's attempts. For facts.cc only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// Step metrics of all ranks and the rows of epochs.csv.
void read_learning(const std::vector<AttemptSource>& attempts, RunFacts& facts);

}  // namespace stoker::report
