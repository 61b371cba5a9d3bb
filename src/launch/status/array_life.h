// The state of an array over all its tasks. Used by judge_life. Thread-safe: no state.
#pragma once

#include "launch/status/life.h"

namespace stoker::launch {

/// The state of a run whose last attempt is an array. REQUIRES: own.array.
RunLife judge_array(const RecordedStatus& own, const SchedulerStatus& status, double now);

}  // namespace stoker::launch
