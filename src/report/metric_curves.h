// Reads the points that programs logged (stoker.log) or that were copied from logs and trackers. Used within
// src/report only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// Curves and summary values of all ranks and attempts.
void read_metric_curves(const std::vector<AttemptSource>& attempts, RunFacts& facts);
/// The same for the tasks of an array without a separate run: their number takes the rank's place.
void read_task_curves(const std::vector<AttemptSource>& attempts, std::vector<TaskFacts>& tasks);
/// The curve whose last value is the result of the run; null if no metric is a loss.
const MetricCurve* main_curve(const RunFacts& facts);

}  // namespace stoker::report
