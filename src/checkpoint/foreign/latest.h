// The newest checkpoint of a folder that is whole, whoever wrote it: Stoker's steps, Hugging Face's
// checkpoint-N folders, torch's distributed checkpoints, single files. Used by `stoker checkpoint latest`,
// by chains, and by the Python module. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "base/time.h"
#include "checkpoint/checkpoint.h"

namespace stoker::checkpoint {

struct LatestOptions {
  std::string match;  ///< only names that fit this pattern (as a shell's); empty: all
  /// What changed a shorter time ago is watched for so long: it may still be written.
  Duration settle = std::chrono::seconds(2);
};

/// What find_latest() found.
struct Latest {
  std::optional<Path> path;
  std::string kind;  ///< "stoker", "hugging face", "dcp", "torch", "keras", "hdf5", "safetensors"
  std::optional<std::int64_t> step;  ///< where the name has one
  std::vector<SkippedStep> skipped;  ///< newer ones, and why each is not whole
};

/// Looks at the candidates from the newest on. Stoker's steps are read and checked byte by byte, other
/// people's must be complete, open, and hold still. If there are steps of Stoker, nothing else is looked at;
/// else if there are checkpoint-N folders, only these. Nothing found is no error, nor is a missing folder;
/// cancelled when `progress` asks to stop.
Result<Latest> find_latest(const Path& folder, const LatestOptions& options, Clock& clock,
                           Progress& progress);

}  // namespace stoker::checkpoint
