// Restores the same checkpoint on all ranks of a Session, or fails on all of them with the same error. The
// Python module's stoker.checkpoint.load follows the same protocol. Thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stoker/checkpoint.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::train {

/// The step to resume from. Without `step` and `directory`, the training starts from the beginning.
struct ResumeRequest {
  Path step;       ///< this step folder, or an error; precedes `directory`
  Path directory;  ///< the newest step that all ranks can restore
  /// How long a rank waits for a step that only its peers see: network filesystems cache for seconds.
  Duration appears_within = std::chrono::seconds(20);
};

/// Restores this rank from a step folder, and returns the name of the save (StepManifest::save). May be
/// called again with an older step.
using RestoreStep = std::function<Result<std::string>(const Path& folder)>;

/// ProcessGroup::all_gather: the texts of all ranks, by rank. Collective.
using GatherTexts = std::function<Result<std::vector<std::string>>(const std::string& own)>;

/// The restored step.
struct AgreedStep {
  Path folder;                                   ///< empty: no rank sees a step
  std::vector<checkpoint::SkippedStep> skipped;  ///< newer steps that a rank could not restore
};

/// Collective: returns the same step or the same error on all ranks. Invalid if their requests differ;
/// not_found if the directory has steps, but each of them is damaged or missing on some rank.
Result<AgreedStep> restore_agreed(const GatherTexts& gather, const ResumeRequest& request,
                                  const RestoreStep& restore);

}  // namespace stoker::train
