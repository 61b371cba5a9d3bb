// Removes checkpoints that are no longer wanted, and what dead writers left. Used by rank 0's Saver and by
// `stoker checkpoint prune`.
// Thread-safe: no state; two processes doing it at once do no harm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "base/text.h"
#include "base/time.h"
#include "checkpoint/catalog.h"

namespace stoker::checkpoint {

/// Removes pending folders whose writer is dead or whose lease is over, and removals that were interrupted.
/// Returns what was removed; what cannot be removed is left for the next time.
std::vector<Path> remove_abandoned(const Path& directory, WallTime now);

/// Which steps a person wants to keep.
struct KeepRule {
  int newest = 3;  ///< valid ones; at least 1
  Duration every{
      0};  ///< and the first valid one that was written in each stretch of this length, in Unix time; 0: none
  int best = 0;        ///< and the valid ones that are best by `metric`, a number of their state; 0: none
  std::string metric;  ///< the less the better when its name has "loss", "error" or "perplexity" in it
};

/// Why a step stays or goes.
enum class Fate : std::uint8_t {
  newest,
  first_of_stretch,
  best,
  not_older,  ///< not valid, but newer than some that are kept
  removed,
};
constexpr std::string_view to_text(Fate fate) {
  constexpr std::string_view kNames[] = {"newest", "first of its time", "best", "newer than kept ones",
                                         "removed"};
  return kNames[static_cast<std::size_t>(fate)];
}

struct PlannedStep {
  StepInfo step;
  Fate fate = Fate::removed;
};

/// What becomes of each step of a directory, newest first; removes nothing. To the depth given, the steps
/// that may be kept are checked, so that a damaged one does not count; when none is valid, none is planned to
/// go. Empty when there is no directory. Cancelled when `progress` asks to stop.
Result<std::vector<PlannedStep>> plan_pruning(const Path& directory, const KeepRule& rule, Depth depth,
                                              Progress& progress);

/// Removes what plan_pruning() would (structure, not bytes) if there were no steps above `published`, the one
/// just written, `reading` excepted. Those above may be damaged where only a full read sees it: they do not
/// count, and stay. Steps that are not valid do not count either and go only when they are older than the
/// newest that are kept. A rule whose `newest` is 0 keeps all. A step vanishes at once: it is renamed before
/// its files go.
Result<std::vector<Path>> prune_steps(const Path& directory, const KeepRule& rule, Step published,
                                      const Path& reading);

/// Whether a metric of that name is the better the less it is.
bool is_less_better(std::string_view metric);

/// Takes one step away as prune_steps does.
Status remove_step(const Path& folder);

}  // namespace stoker::checkpoint
