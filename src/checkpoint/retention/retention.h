// Removes old checkpoints and leftovers of dead writers. Used by rank 0's Saver and by `stoker checkpoint
// prune`. Thread-safe: no state; two processes may do it at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/read/catalog.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Removes pending folders whose writer is dead or whose lease has expired, and interrupted removals. Returns
/// the removed paths; failed ones are retried next time.
std::vector<Path> remove_abandoned(const Path& directory, WallTime now);

/// Which steps to keep.
struct RetentionPolicy {
  int keep_last = 3;  ///< newest valid ones; at least 1
  Duration keep_every{
      0};  ///< and the first valid one written in each interval of this length, in Unix time; 0: none
  int keep_best = 0;   ///< and the best valid ones by `metric`, a number of their state; 0: none
  std::string metric;  ///< lower is better if its name contains "loss", "error" or "perplexity"
};

/// Why a step is kept or removed.
enum class RetentionReason : std::uint8_t {
  newest,
  first_of_interval,
  best,
  newer_invalid,  ///< invalid, but newer than a kept one
  removed,
};
constexpr std::string_view to_text(RetentionReason reason) {
  constexpr std::string_view kNames[] = {"newest", "first of its interval", "best",
                                         "invalid, but newer than kept steps", "removed"};
  return kNames[static_cast<std::size_t>(reason)];
}

struct PlannedStep {
  StepInfo step;
  RetentionReason reason = RetentionReason::removed;
};

/// Plan for each step of a directory, newest first; removes nothing. Steps to keep are checked to the given
/// depth, so a damaged one does not count. If none is valid, none is removed. Empty without a directory.
/// Cancelled if `progress` requests a stop.
Result<std::vector<PlannedStep>> plan_pruning(const Path& directory, const RetentionPolicy& rule, Depth depth,
                                              Progress& progress);

/// Applies plan_pruning() (structure, not bytes) to the steps up to `published`, the one just written, except
/// `protected_step`. Newer steps may be damaged where only a full read detects it: they do not count and are
/// kept. Invalid steps do not count either and are removed only if older than the oldest of the newest kept.
/// `keep_last` 0 keeps all. A step disappears at once: it is renamed before its files are deleted.
Result<std::vector<Path>> prune_steps(const Path& directory, const RetentionPolicy& rule, Step published,
                                      const Path& protected_step);

/// Whether a lower value of this metric is better.
bool is_lower_better(std::string_view metric);

/// Removes one step as prune_steps() does.
Status remove_step(const Path& folder);

}  // namespace stoker::checkpoint
