// The settings below `profile`: they become part of the command of `run`. Constants.
#pragma once

#include <span>

#include "job/check.h"
#include "job/settings.h"

namespace stoker::job {

std::span<const JobSetting> profile_settings();
/// Adds errors of the settings below `profile`. REQUIRES: a job whose ranks are complete.
void check_profile(const config::EffectiveConfig& effective, const Job& job, config::ErrorList& errors);

}  // namespace stoker::job
