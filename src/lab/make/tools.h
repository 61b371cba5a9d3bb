// The programs a lab is made of: where they are, and which Debian packages bring what is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "lab/lab.h"

namespace stoker::lab {

/// The path of a program: looked up in PATH and, as daemons are not on a user's PATH, in the sbin folder
/// beside each bin folder of it. Empty when it is not there.
std::string find_tool(std::string_view program);

/// Ok when everything is installed that a lab of these options needs. Else Unavailable "lab: slurmctld,
/// slurmd: not installed", with the line that installs the packages as its cure.
Status check_packages(const Options& options);

/// Runs a program of the system, which must end with 0 before the deadline; what it printed. Else Unavailable
/// "<subject>: <program>: <first line it printed on standard error, or how it ended>".
Result<std::string> run_tool(std::string_view subject, const Command& command, Deadline deadline);

}  // namespace stoker::lab
