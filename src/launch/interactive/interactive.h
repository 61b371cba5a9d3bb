// Interactive allocations with the resources and the environment of a job file, and the recording of their
// commands as a job file. Used by `stoker shell` and `stoker jupyter`. Functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "launch/start/run.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// Whether the command on the node has the terminal.
enum class Terminal { forwarded, none };

/// salloc with the options of `request`'s batch script, then srun, which starts `command` on the first node.
/// srun shares its resources, so runs started inside can use all of them.
Result<std::vector<std::string>> salloc_arguments(const Request& request,
                                                  const std::vector<std::string>& command,
                                                  Terminal terminal = Terminal::forwarded);

/// The environment for salloc and the whole allocation: `base` with the job's modules, conda environment,
/// virtual environment and variables. Excludes variables that would override the job file.
Result<Environment> interactive_environment(const job::Job& job, Environment base, Deadline deadline);

/// A bashrc that reads the user's own one and appends every command line and its exit code to `notes`.
std::string recording_bashrc(const Path& notes);

/// The successful command lines in `notes`, in order, without commands that only inspect or exit (ls, pwd,
/// exit, history).
std::vector<std::string> successful_lines(std::string_view notes);

/// `job` with these lines as its command. The first failure ends it.
job::Job job_of_lines(job::Job job, const std::vector<std::string>& lines);

}  // namespace stoker::launch
