// Where an array is in its life: the one verdict over all its tasks. Used by judge_life. Thread-safe: no
// state.
#pragma once

#include "launch/life.h"

namespace stoker::launch {

/// The verdict for a run whose last attempt is an array. REQUIRES: own.array.
RunLife judge_array(const OwnWord& own, const SchedulerWord& word, double now);

}  // namespace stoker::launch
