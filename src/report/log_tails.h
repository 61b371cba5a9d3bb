// Reads the ends of logs. For facts.cc only.
#pragma once

#include "report/sources.h"

namespace stoker::report {

/// Log tails of the last attempt: of the rank that failed first, and of rank 0.
void read_logs(const record::Attempt& last, RunFacts& facts);

}  // namespace stoker::report
