// Production checks of data: layout, versions, node-local copies. Internal to this folder.
#pragma once

#include "preflight/production/history.h"
#include "preflight/production/production.h"

namespace stoker::preflight {

/// Whether the datasets are packed into shards of a good size.
ProductionPoint data_sharded(const ProductionFacts& facts);
/// Whether the data has manifests with hashes.
ProductionPoint data_hashed(const ProductionFacts& facts);
/// Whether the last run recorded the version of its data.
ProductionPoint data_of_run(const ProductionFacts& facts);
/// Whether data is staged to node-local disks, which the job cleans.
ProductionPoint stage_cleaned(const ProductionFacts& facts);

}  // namespace stoker::preflight
