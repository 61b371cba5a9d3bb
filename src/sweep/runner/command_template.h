// The command of a trial: its parameters in place of {name}. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

/// Invalid when a placeholder of the command names neither a parameter nor `extra`, or has no end. `{{` and
/// `}}` are braces.
Status check_command(const std::vector<std::string>& command, const Space& space,
                     std::string_view extra = {});

/// The command with the values. An argument with a parameter that is not active is left out. Without any
/// placeholder, --name=value is appended for each value. REQUIRES: check_command() is ok.
std::vector<std::string> fill_command(const std::vector<std::string>& command, const Space& space,
                                      const Assignment& values);

}  // namespace stoker::sweep
