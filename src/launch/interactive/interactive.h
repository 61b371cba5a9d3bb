// An allocation to work in by hand, with the resources and the environment that a job file asks for, and what
// was typed there as a job file again. Used by `stoker shell` and `stoker jupyter`. Functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "job/job.h"
#include "launch/run.h"

namespace stoker::launch {

/// Whether what is started on the node has the terminal.
enum class Terminal { passed_on, none };

/// salloc with the options that the batch script of `request` would have, then srun, which starts `command`
/// on the allocation's first node. What that takes is shared: runs started from it get all.
Result<std::vector<std::string>> salloc_arguments(const Request& request,
                                                  const std::vector<std::string>& command,
                                                  Terminal terminal = Terminal::passed_on);

/// What salloc is started with, and so everything in the allocation: `base` with the job's modules, conda
/// environment, virtual environment and variables, without variables that would win over the job file.
Result<Environment> interactive_environment(const job::Job& job, Environment base, Deadline deadline);

/// What bash reads first to work as always and to note in `notes` every command line and its exit code.
std::string recording_rc(const Path& notes);

/// The command lines in such notes that came to a good end, in order; those that only look or leave (ls, pwd,
/// exit, history) are no part of the work.
std::vector<std::string> lines_that_worked(std::string_view notes);

/// `job` with these lines as what it runs, one after the other, the first failure ending it.
job::Job job_of_lines(job::Job job, const std::vector<std::string>& lines);

}  // namespace stoker::launch
