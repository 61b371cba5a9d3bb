// Production checks of run records: usage, checkpoints, metrics, environment, scaling. Internal to this
// folder.
#pragma once

#include "preflight/production/history.h"
#include "preflight/production/production.h"

namespace stoker::preflight {

/// Whether GPU usage, data waits and I/O were measured.
ProductionPoint usage_measured(const ProductionFacts& facts);
/// Whether checkpoints are kept where nothing deletes them.
ProductionPoint checkpoints_placed(const ProductionFacts& facts);
/// Whether parameters, metrics and artifacts were kept.
ProductionPoint runs_tracked(const ProductionFacts& facts);
/// Whether every version of the environment is fixed.
ProductionPoint environment_frozen(const ProductionFacts& facts);
/// Whether runs with different sizes were compared in a report.
ProductionPoint scaling_documented(const ProductionFacts& facts);
/// Whether the compared runs have clean commits.
ProductionPoint baseline_versioned(const ProductionFacts& facts);

}  // namespace stoker::preflight
