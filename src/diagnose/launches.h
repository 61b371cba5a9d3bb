// Launchers in the record of an attempt that start ranks in a way that does not add up: the findings of
// `stoker check`, as the cause of a failure or as a note. Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/finding.h"
#include "diagnose/failure.h"
#include "diagnose/rank_lines.h"
#include "record/run_folder.h"
#include "script_lint/lint.h"

namespace stoker::diagnose {

/// A finding, with the line that starts the launcher as its evidence.
struct LaunchFinding {
  Finding finding;
  script_lint::LauncherCopies copies;  ///< that train separately
};

struct RecordedLaunches {
  std::vector<LaunchFinding> findings;
  LogLayout logs = LogLayout::log_per_process;
  std::string check;  ///< the command with the same findings: "stoker check job.yaml"; "" without a file
};

/// How the attempt ended, for the question whether its launcher explains a failure.
enum class AttemptEnd { none, done, failed, other };

/// The findings about the batch script or the command in the record of the attempt. `script`: the copy of the
/// user's batch script; empty for a job file. Empty for a damaged record, and for an attempt that never
/// started or started with a different number of ranks. Does not read called scripts that have changed since
/// the start.
RecordedLaunches read_recorded_launches(const record::RunFolder& run, const record::Attempt& attempt,
                                        const Path& script);

/// Makes the first finding that fits the failure its cause, and returns the remaining ones as notes; each has
/// evidence. The cause is certain only if the ranks printed that they train separately.
std::vector<Finding> join_launches(const RecordedLaunches& launches, const RankLines& lines, AttemptEnd end,
                                   Diagnosis& diagnosis);

}  // namespace stoker::diagnose
