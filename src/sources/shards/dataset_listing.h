// Lists a dataset as a source: its index defines the samples. Used by shards. Blocks on the storage.
#pragma once

#include <memory>

#include "dataset/shard_source.h"
#include "sources/rate_limiter.h"
#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Lists the samples, keys, labels, classes and splits of the index, in its order; REQUIRES: `opened` is the
/// dataset at options.where. Chunked shards are unpacked into options.scratch, because packing may read their
/// files in any order. Invalid for windows over grids, NoSpace if the scratch folder cannot hold the files,
/// Corrupt for a chunked shard that the index does not match, Cancelled on stop_requested().
Result<PackSource> list_dataset(const SourceOptions& options, const dataset::OpenDataset& opened,
                                std::shared_ptr<RateLimiter> rate_limiter, Progress& progress);

}  // namespace stoker::sources
