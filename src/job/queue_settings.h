// Keys that turn a submitted run into several jobs: chain, restart, array, after. Constants.
#pragma once

#include <span>

#include "config/setting.h"

namespace stoker::job {

std::span<const config::Setting> queue_settings();

}  // namespace stoker::job
