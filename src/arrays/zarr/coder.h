// Zarr's codecs as a chunk coder of shards. Thread-safe: no state.
#pragma once

#include <memory>

#include "arrays/zarr/metadata.h"
#include "codec/chunks/coders.h"

namespace stoker::arrays {

/// The coder of an array's chunks; with shards, of the inner chunks.
std::shared_ptr<const codec::ChunkCoder> zarr_chunk_coder(const ZarrMetadata& metadata);
/// The coder of variable-length values: a chunk unpacks to a stream whose size is in its StoredChunk.
std::shared_ptr<const codec::ChunkCoder> zarr_stream_coder(const ZarrMetadata& metadata);

/// Parses the text of kind "zarr", as codec::CoderParser does.
Result<std::shared_ptr<const codec::ChunkCoder>> parse_zarr_coder(const std::string& text,
                                                                  const codec::ChunkedArray& array,
                                                                  std::string_view subject);

}  // namespace stoker::arrays
