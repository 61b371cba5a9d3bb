// Encodes and decodes chunks: elements in C order and native byte order on one side, stored bytes on the
// other. Thread-safe: no state; any number of chunks at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "arrays/zarr/metadata.h"
#include "codec/chunks/box.h"
#include "codec/chunks/chunk_cache.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// Shape and type of a chunk.
struct ChunkShape {
  const codec::Extents& sizes;
  const codec::ElementType& type;

  /// REQUIRES: check_zarr_metadata() succeeded.
  std::uint64_t bytes() const { return *codec::product(sizes, type.bytes); }
};

/// The maximum stored size of a chunk of `bytes`: codecs add bytes to incompressible data.
std::uint64_t max_stored_bytes(std::uint64_t bytes);

/// Decodes a stored chunk. Corrupt, beginning with `subject`, unless it decodes to exactly its size. Uses a
/// small multiple of the chunk's size, whatever the bytes are.
Result<codec::Buffer> decode_chunk(const Pipeline& pipeline, ChunkShape shape,
                                   std::span<const std::byte> stored, std::string_view subject);

/// The decoded size of a stored chunk of unknown size. Invalid if it is over `most`, Corrupt for damage;
/// only decode_chunk() compares checksums.
Result<std::uint64_t> unpacked_bytes(const Pipeline& pipeline, std::span<const std::byte> stored,
                                     std::uint64_t most, std::string_view subject);

/// Encodes a chunk. REQUIRES: elements of exactly that shape.
Result<std::string> encode_chunk(const Pipeline& pipeline, ChunkShape shape,
                                 std::span<const std::byte> elements);

}  // namespace stoker::arrays
