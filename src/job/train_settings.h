// Keys under `train`, except the ones in learning_settings.h. Constants.
#pragma once

#include <span>

#include "job/settings.h"

namespace stoker::job {

/// Model, data and duration.
std::span<const JobSetting> train_task_settings();
/// Precision, image transforms and communication.
std::span<const JobSetting> train_computing_settings();

}  // namespace stoker::job
