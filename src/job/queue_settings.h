// Keys that turn a submitted run into several jobs: chain, restart, array, after. Constants.
#pragma once

#include <span>

#include "job/settings.h"

namespace stoker::job {

std::span<const JobSetting> queue_settings();

}  // namespace stoker::job
