// Finds the newest complete checkpoint of a folder in any supported format: Stoker's steps, Hugging Face's
// checkpoint-N folders, torch's distributed checkpoints, single files. Used by `stoker checkpoint latest`, by
// chains and by the Python module. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/checkpoint.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

struct LatestOptions {
  std::string match;  ///< only names that match this glob pattern; empty: all
  /// A candidate changed more recently than this is watched for this time: it may still be being written.
  Duration settle = std::chrono::seconds(2);
};

/// Result of find_latest().
struct Latest {
  std::optional<Path> path;
  std::string kind;  ///< "stoker", "hugging face", "dcp", "torch", "keras", "hdf5", "safetensors"
  std::optional<std::int64_t> step;  ///< if the name has one
  std::vector<SkippedStep> skipped;  ///< newer candidates and the reason for each
};

/// A checkpoint of a third-party program.
struct ForeignCheckpoint {
  Path path;
  std::string kind;                  ///< as in Latest
  std::optional<std::int64_t> step;  ///< if the name has one
  std::uint64_t bytes = 0;
  double written = 0;  ///< last change, Unix seconds
  std::string why;     ///< why it is not complete; "" for a complete one
};

/// The candidates that find_latest() considers in a folder without Stoker's steps, newest first. Does not
/// wait for one that is still being written. Empty for a missing folder.
Result<std::vector<ForeignCheckpoint>> list_foreign(const Path& folder);

/// Checks the candidates from the newest on. Stoker's steps are verified byte by byte; other formats must be
/// complete and unchanged. If there are Stoker steps, only these are considered; otherwise, if there are
/// checkpoint-N folders, only these. An empty result or a missing folder is not an error. Cancelled if
/// `progress` requests a stop.
Result<Latest> find_latest(const Path& folder, const LatestOptions& options, Clock& clock,
                           Progress& progress);

}  // namespace stoker::checkpoint
