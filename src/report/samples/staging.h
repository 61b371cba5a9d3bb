// What was staged to the nodes of a run before its ranks, from its events. Thread-safe: no state.
#pragma once

#include "record/events.h"
#include "report/facts.h"

namespace stoker::report {

/// Adds the attempt's staging to `facts.staging`; nothing if nothing was staged.
void add_staging(int attempt, const record::EventLog& log, RunFacts& facts);

}  // namespace stoker::report
