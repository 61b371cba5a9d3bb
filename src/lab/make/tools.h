// The programs of a lab: their paths, and the Debian packages of missing ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/lab.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::lab {

/// The path of a program, searched in PATH and, for daemons, in the sbin folder next to each bin folder.
/// Empty if not found.
std::string find_tool(std::string_view program);

/// Ok if all programs for these options are installed. Else Unavailable "lab: slurmctld,
/// slurmd: not installed", with the line that installs the packages as its cure.
Status check_packages(const Options& options);

/// Runs a program, which must exit with 0 before the deadline, and returns its output. Else Unavailable
/// "<subject>: <program>: <first line of its standard error, or exit status>".
Result<std::string> run_tool(std::string_view subject, const Command& command, Deadline deadline);

}  // namespace stoker::lab
