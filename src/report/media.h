// Reads the images and histograms that programs logged (stoker.log_image, stoker.log_histogram). Used within
// src/report only.
#pragma once

#include <vector>

#include "report/sources.h"

namespace stoker::report {

/// Of all attempts, joined like the points. The lowest rank that logged a name counts.
void read_media(const std::vector<AttemptSource>& attempts, RunFacts& facts, MediaRoom& room);

/// Of an array's tasks without a separate run, whose files have the number of the task.
void read_task_media(const std::vector<AttemptSource>& attempts, std::vector<TaskFacts>& tasks,
                     MediaRoom& room);

}  // namespace stoker::report
