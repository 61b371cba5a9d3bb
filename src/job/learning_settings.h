// Keys under `train` for optimizer, schedule and regularization. Constants.
#pragma once

#include <span>

#include "job/settings.h"

namespace stoker::job {

std::span<const JobSetting> train_learning_settings();

}  // namespace stoker::job
