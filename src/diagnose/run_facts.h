// Collects the facts of a failed run: logs of ranks, torchrun and batch script, the recorded reason, the
// state of its collectives if ranks wait, and its resource usage. Used by `stoker explain`. Thread-safe: no
// state.
#pragma once

#include "base/language/message.h"
#include "diagnose/failure.h"
#include "observe/suspect_lines.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::diagnose {

/// Facts of one attempt. `records`: the state of the run; its reason applies to the last attempt only. `now`:
/// Unix seconds.
FailureFacts facts_of_run(const record::RunFolder& run, const record::Attempt& attempt,
                          const record::RunState& records, double now);

/// The name of standard input among logs.
inline constexpr std::string_view kStandardInput = "-";

/// Facts of logs: files, folders of them, standard input, or dumps of torch's flight recorder. A dump is read
/// with the dumps of all ranks beside it. NotFound names a missing log.
Result<FailureFacts> facts_of_logs(const std::vector<std::string>& names);

/// A line with a failure in a run that succeeded.
Finding finding_of(const observe::SuspectLine& doubt);

/// Log-like files of a folder, including compressed ones, ordered by name. The rank comes from names of
/// Stoker or torchrun ("rank-0003.log", "3/stderr.log"). At most 4096 files, two levels deep.
Result<std::vector<FailedLog>> logs_in_folder(const Path& folder);

/// The rank in the name of a log: 3 of "rank-0003.log", "train_rank3.out", "rank_3.err.gz"; -1 without one.
int rank_in_name(std::string_view name);

}  // namespace stoker::diagnose
