// The index of a Zarr shard: the offsets of chunks in the stored object. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/zarr/metadata.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// The bytes of a chunk inside a shard.
struct ShardEntry {
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  std::uint64_t offset = kMissing;
  std::uint64_t bytes = kMissing;

  bool is_missing() const { return offset == kMissing && bytes == kMissing; }
  bool operator==(const ShardEntry&) const = default;
};

/// Chunks of a shard along each dimension.
codec::Extents chunks_per_shard(const ZarrMetadata& metadata);
/// Bytes of a shard's index, or nothing for too many chunks (2^24).
std::optional<std::uint64_t> shard_index_bytes(const ZarrMetadata& metadata);

/// Parses an index of exactly that many bytes. Corrupt for a wrong CRC and for an entry outside the shard's
/// `shard_bytes`.
Result<std::vector<ShardEntry>> parse_shard_index(const Sharding& sharding, std::span<const std::byte> index,
                                                  std::uint64_t shard_bytes, std::string_view subject);

/// Encodes a shard of these encoded chunks, in the order of the index; nullopt is a missing chunk.
std::string encode_shard(const Sharding& sharding, std::span<const std::optional<std::string>> chunks);

}  // namespace stoker::arrays
