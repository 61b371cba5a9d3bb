// Chunks through their pipelines: elements in C order and this machine's byte order on one side, stored bytes
// on the other. Thread-safe: no state; any number of chunks at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/chunks/box.h"
#include "format/chunks/chunk_cache.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// What a chunk is made of.
struct ChunkShape {
  const Extents& sizes;
  const ElementType& type;

  /// REQUIRES: what check_zarr_metadata() let pass.
  std::uint64_t bytes() const { return *product(sizes, type.bytes); }
};

/// The most bytes a chunk of `bytes` may be stored in: what a codec adds to data it cannot pack.
std::uint64_t most_stored_bytes(std::uint64_t bytes);

/// The elements of a stored chunk. Corrupt, beginning with `subject`, for anything that is not exactly them.
/// Memory is a small multiple of the chunk's size, whatever the bytes say.
Result<Buffer> decode_chunk(const Pipeline& pipeline, ChunkShape shape, std::span<const std::byte> stored,
                            std::string_view subject);

/// How many bytes come out of a stored chunk of which that is not known. Invalid where they are over `most`,
/// Corrupt for damage; decode_chunk() is what compares checksums.
Result<std::uint64_t> unpacked_bytes(const Pipeline& pipeline, std::span<const std::byte> stored,
                                     std::uint64_t most, std::string_view subject);

/// The stored form of a chunk. REQUIRES: elements of exactly that shape.
Result<std::string> encode_chunk(const Pipeline& pipeline, ChunkShape shape,
                                 std::span<const std::byte> elements);

}  // namespace stoker::formats
