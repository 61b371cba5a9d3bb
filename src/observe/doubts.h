// Signs in a log that something failed although the whole ended well: a batch script or a line of shell gives
// the exit code of its last command only, so Slurm says COMPLETED of a job whose training never started.
// Used by status, wait and the report. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "record/run_folder.h"

namespace stoker::observe {

/// One such line.
struct Doubt {
  Path file;
  std::uint64_t line = 0;  ///< counted from 1
  std::string text;
};

/// The first `at_most` of a log of which at most 4 MiB are read: a shell's own word that a command did not
/// run or was killed, srun's that a task failed, an uncaught exception of Python, a disk that is full.
/// Nothing without a log.
std::vector<Doubt> find_doubts(const Path& log, std::size_t at_most = 3);

/// The same of an attempt: the logs of its first ranks, or else its batch script's.
std::vector<Doubt> doubts_of(const record::Attempt& attempt, std::size_t at_most = 3);

}  // namespace stoker::observe
