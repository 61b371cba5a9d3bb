// Sources from a list of paths with labels and splits. Used by list_source(). Blocks on the storage.
#pragma once

#include <memory>

#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Lists a source from a CSV, TSV or Parquet file with paths, labels and splits.
Result<PackSource> list_from_table(const SourceOptions& options, std::shared_ptr<RateLimiter> rate_limiter,
                                   Progress& progress);

}  // namespace stoker::sources
