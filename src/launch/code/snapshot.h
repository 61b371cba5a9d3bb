// A copy of the code as it is when a run is made: what is committed, what is changed, what is new. The run
// uses the copy, so nothing that is edited while it waits or trains reaches it. Used by run and submit.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// What will be copied.
struct CodeListing {
  Path root;                          ///< top of the work tree
  Path inside;                        ///< the job's working directory, relative to it
  std::vector<std::string> files;     ///< relative to `root`, sorted
  std::vector<std::string> left_out;  ///< untracked files over the limit
};

/// Where code is looked for.
struct CodePlace {
  Path folder;                ///< in the repository
  Path runs;                  ///< what is below is no code
  ByteCount untracked_limit;  ///< files that git does not track are left out when they are larger
};
/// The files of the repository around that folder that git knows or does not ignore; of a folder that came
/// over ssh (remote/send.h) those that were sent. NotFound where there is neither, or no git.
Result<CodeListing> list_code(const CodePlace& place);
/// The same around the job's working directory.
Result<CodeListing> list_code(const job::Job& job);

/// What was copied.
struct Snapshot {
  Path directory;  ///< the working directory in the copy
  std::uint64_t files = 0;
  ByteCount bytes;
};

/// Copies them to `code/` in the run's folder, read only, with what was left out in `.stoker-snapshot.json`
/// there.
Result<Snapshot> take_snapshot(const CodeListing& listing, const record::RunFolder& run);

/// Whether a run of this job still has to take one; one that goes on has its own.
bool wants_snapshot(const job::Job& job, const std::optional<record::RunFolder>& resumed);

}  // namespace stoker::launch
