// Copies the code when a run is created: committed, changed and new files. The run uses the copy, so later
// edits do not affect it. Used by run and submit. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "record/run_folder.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The files to copy.
struct CodeListing {
  Path root;                          ///< top of the work tree
  Path inside;                        ///< the job's working directory, relative to it
  std::vector<std::string> files;     ///< relative to `root`, sorted
  std::vector<std::string> left_out;  ///< untracked files over the limit
  std::vector<std::string> secret;    ///< untracked files that usually hold secrets (.env); left out, too
};

/// Where to find the code.
struct CodeSource {
  Path folder;                ///< a folder in the repository
  Path runs;                  ///< excluded from the code
  ByteCount untracked_limit;  ///< larger untracked files are left out
};
/// The files of the enclosing repository that git tracks or does not ignore. For a folder that was sent over
/// ssh (remote/send.h), the sent files. NotFound without a repository, a sent folder or git.
Result<CodeListing> list_code(const CodeSource& place);
/// The same for the job's working directory.
Result<CodeListing> list_code(const job::Job& job);

/// The result of a copy.
struct Snapshot {
  Path directory;  ///< the working directory in the copy
  std::uint64_t files = 0;
  ByteCount bytes;
};

/// Copies the files to `code/` in the run's folder, read only, and lists the left-out files in
/// `.stoker-snapshot.json` there.
Result<Snapshot> take_snapshot(const CodeListing& listing, const record::RunFolder& run);

/// The files that a snapshot leaves out, as lines for users: "code.snapshot: left out .env: ...".
std::vector<std::string> left_out_notes(const CodeListing& listing);

/// Whether a run of this job still needs a snapshot; a resumed run already has one.
bool needs_snapshot(const job::Job& job, const std::optional<record::RunFolder>& resumed);

}  // namespace stoker::launch
