// Keys under `train` for optimizer, schedule and regularization. Constants.
#pragma once

#include <span>

#include "config/setting.h"

namespace stoker::job {

std::span<const config::Setting> train_learning_settings();

}  // namespace stoker::job
