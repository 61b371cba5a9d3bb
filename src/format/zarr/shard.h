// The index of a Zarr shard: where in the stored object each chunk lies. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// A chunk's bytes inside a shard.
struct ShardEntry {
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  std::uint64_t offset = kMissing;
  std::uint64_t bytes = kMissing;

  bool is_missing() const { return offset == kMissing && bytes == kMissing; }
  bool operator==(const ShardEntry&) const = default;
};

/// Chunks of a shard along each dimension.
Extents chunks_per_shard(const ZarrMetadata& metadata);
/// Bytes of a shard's index, or nothing where there would be too many chunks (2^24) to hold one.
std::optional<std::uint64_t> shard_index_bytes(const ZarrMetadata& metadata);

/// Reads an index of exactly that many bytes. Corrupt for a wrong CRC and for an entry that does not lie in
/// the shard's `shard_bytes`.
Result<std::vector<ShardEntry>> parse_shard_index(const Sharding& sharding, std::span<const std::byte> index,
                                                  std::uint64_t shard_bytes, std::string_view subject);

/// A whole shard of these encoded chunks, in the index's order; one without a value is missing.
std::string make_shard(const Sharding& sharding, std::span<const std::optional<std::string>> chunks);

}  // namespace stoker::formats
