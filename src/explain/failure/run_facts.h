// What a run's own folder tells of its failure: the logs of its ranks, torchruns and batch script, the reason
// in its records, where its collectives stand when ranks wait for each other, and how it used its machine.
// Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include "base/language/words.h"
#include "explain/failure/failure.h"
#include "observe/doubts.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::explain {

/// Of one attempt. `records`: the state of the run, whose reason counts for its last attempt only. `now`:
/// Unix seconds.
FailureFacts facts_of_run(const record::RunFolder& run, const record::Attempt& attempt,
                          const record::RunState& records, double now, const Words& words = Words());

/// A line that tells of a failure in what ended well.
Finding finding_of(const observe::Doubt& doubt, const Words& words = Words());

/// The files of a folder that look like logs, packed ones too, in the order of their names; names hold the
/// rank where they are Stoker's or torchrun's ("rank-0003.log", "3/stderr.log"). At most 4096, two folders
/// deep.
Result<std::vector<FailedLog>> logs_in_folder(const Path& folder);

/// The rank in the name of a log: 3 of "rank-0003.log", "train_rank3.out", "rank_3.err.gz"; -1 for none.
int rank_in_name(std::string_view name);

}  // namespace stoker::explain
