// Sources from datasets and from shards of other tools. Used by list_source() and convert. Blocks on the
// storage.
#pragma once

#include <memory>

#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Whether the source is a dataset, a folder of shards from other tools (tar by WebDataset's rules, TFRecord,
/// Parquet), or one file of records or rows. A folder of shards has no subfolders and no images.
Result<bool> is_shard_source(const SourceOptions& options);
/// Lists samples, keys, labels and splits of such a source, regardless of `layout`. The index of a dataset,
/// or of an indexed folder, defines them, except if table options are set. REQUIRES: is_shard_source(), and a
/// scratch folder.
Result<PackSource> list_from_shards(const SourceOptions& options, std::shared_ptr<RateLimiter> rate_limiter,
                                    Progress& progress);

}  // namespace stoker::sources
