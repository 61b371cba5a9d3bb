// The settings below `profile`: they become part of the command of `run`. Constants.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "job/check.h"
#include "job/settings.h"

namespace stoker::job {

std::span<const JobSetting> profile_settings();
struct ToolAndCommand {
  std::string tool;  ///< "perf"; "" without one
  std::vector<std::string> command;
};
/// Of the words of a job's command, in which `profile.tool` is `stoker profile --tool`.
ToolAndCommand split_profile_tool(const std::vector<std::string>& words);
/// Adds errors of the settings below `profile`. REQUIRES: a job whose ranks are complete.
void check_profile(const config::EffectiveConfig& effective, const Job& job, config::ErrorList& errors);

}  // namespace stoker::job
