// Keys under `train`, except the ones in learning_settings.h. Constants.
#pragma once

#include <span>

#include "config/setting.h"

namespace stoker::job {

/// Model, data and duration.
std::span<const config::Setting> train_task_settings();
/// Precision, image transforms and communication.
std::span<const config::Setting> train_computing_settings();

}  // namespace stoker::job
