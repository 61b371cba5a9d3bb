// Zarr's codecs as a coder of chunks that lie in a shard. Thread-safe: no state.
#pragma once

#include <memory>

#include "format/chunked/coders.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// Of the chunks of an array; of those inside its shards, where it has shards.
std::shared_ptr<const ChunkCoder> zarr_chunk_coder(const ZarrMetadata& metadata);
/// Of those of values of different lengths: what they unpack to is a stream, as long as its place says.
std::shared_ptr<const ChunkCoder> zarr_stream_coder(const ZarrMetadata& metadata);

}  // namespace stoker::formats
