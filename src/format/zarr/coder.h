// Zarr's codecs as a coder of chunks that lie in a shard. Thread-safe: no state.
#pragma once

#include <memory>

#include "format/chunked/coders.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// Of the chunks of an array; of those inside its shards, where it has shards.
std::shared_ptr<const ChunkCoder> zarr_chunk_coder(const ZarrMetadata& metadata);

}  // namespace stoker::formats
