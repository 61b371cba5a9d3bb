// Launchers in the record of an attempt that start ranks in a way that does not add up: the findings of
// `stoker check`, as the cause of a failure or as a note. Called by explain.cc.
#pragma once

#include <string>
#include <vector>

#include "base/finding.h"
#include "cli/explain/explanation.h"
#include "diagnose/rank_lines.h"
#include "record/run_folder.h"
#include "script_lint/lint.h"

namespace stoker::cli {

/// A finding, with the line that starts the launcher as its evidence.
struct LaunchFinding {
  Finding finding;
  script_lint::LauncherCopies copies;  ///< that train separately
};

struct RecordedLaunches {
  std::vector<LaunchFinding> findings;
  diagnose::LogLayout logs = diagnose::LogLayout::log_per_process;
  std::string check;  ///< the command with the same findings: "stoker check job.yaml"; "" without a file
};

/// The findings about the batch script or the command in the record of the attempt. Empty for a damaged
/// record, and for an attempt that never started or started with a different number of ranks. Does not read
/// called scripts that have changed since the start.
RecordedLaunches read_recorded_launches(const record::RunFolder& run, const record::Attempt& attempt);

/// Makes the first finding that fits the failure its cause, and adds the remaining ones as notes. The cause
/// is certain only if the ranks printed that they train separately. REQUIRES: the explanation has a
/// diagnosis.
void add_launches(const RecordedLaunches& launches, const diagnose::RankLines& lines,
                  Explanation& explanation);

}  // namespace stoker::cli
