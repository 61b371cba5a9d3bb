// Signs of a failure in the log of a run that ended successfully: a batch script or shell line returns only
// the exit code of its last command, so Slurm reports COMPLETED for a job whose training never started. Used
// by status, wait and the report. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::observe {

/// One such line.
struct SuspectLine {
  Path file;
  std::uint64_t line = 0;  ///< counted from 1
  std::string text;
};

/// The first `at_most` suspect lines in the first 4 MiB of a log: a shell's message that a command was not
/// found or was killed, srun's message that a task failed, an uncaught Python exception, a full disk. Not an
/// exception that Python or the program handled and logged. Empty without a log.
std::vector<SuspectLine> find_suspect_lines(const Path& log, std::size_t at_most = 3);

/// Same, for an attempt: the logs of its first ranks, else of its batch script.
std::vector<SuspectLine> attempt_suspect_lines(const record::Attempt& attempt, std::size_t at_most = 3);

}  // namespace stoker::observe
