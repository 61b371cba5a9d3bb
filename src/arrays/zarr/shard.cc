#include "arrays/zarr/shard.h"

#include "base/hash.h"
#include "codec/filters/filters.h"
#include "codec/load.h"

namespace stoker::arrays {

namespace {

constexpr std::uint64_t kEntryBytes = 16;
constexpr std::uint64_t kIndexCrcBytes = 4;
constexpr std::uint64_t kMaxInShard = 1u << 24;

template <typename T>
void append(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string index_of(const Sharding& sharding, std::span<const ShardEntry> entries) {
  std::string index;
  for (const ShardEntry& entry : entries) {
    append(index, entry.offset);
    append(index, entry.bytes);
  }
  if (sharding.index_order == codec::ByteOrder::big)
    codec::swap_bytes(std::as_writable_bytes(std::span(index)), sizeof(std::uint64_t));
  if (sharding.index_has_crc) append(index, crc32c(index));
  return index;
}

}  // namespace

codec::Extents chunks_per_shard(const ZarrMetadata& metadata) {
  codec::Extents counts = metadata.chunks;
  for (std::size_t d = 0; d < counts.size(); ++d) counts[d] /= metadata.inner_chunks()[d];
  return counts;
}

std::optional<std::uint64_t> shard_index_bytes(const ZarrMetadata& metadata) {
  const std::optional<std::uint64_t> chunks = codec::product(chunks_per_shard(metadata));
  if (!chunks || *chunks > kMaxInShard) return std::nullopt;
  return *chunks * kEntryBytes + (metadata.sharding->index_has_crc ? kIndexCrcBytes : 0);
}

Result<std::vector<ShardEntry>> parse_shard_index(const Sharding& sharding, std::span<const std::byte> index,
                                                  std::uint64_t shard_bytes, std::string_view subject) {
  if (sharding.index_has_crc) {
    if (index.size() < kIndexCrcBytes) return corrupt("{}: shard index is too short", subject);
    const auto expected = codec::load<std::uint32_t>(index, index.size() - kIndexCrcBytes);
    index = index.first(index.size() - kIndexCrcBytes);
    const std::uint32_t found = crc32c(index);
    if (found != expected) {
      return corrupt("{}: shard index: CRC-32C expected {:08x}, found {:08x}", subject, expected, found);
    }
  }
  std::vector<ShardEntry> entries(index.size() / kEntryBytes);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ShardEntry entry{codec::load<std::uint64_t>(index, i * kEntryBytes),
                     codec::load<std::uint64_t>(index, i * kEntryBytes + 8)};
    if (sharding.index_order == codec::ByteOrder::big) {
      entry = {__builtin_bswap64(entry.offset), __builtin_bswap64(entry.bytes)};
    }
    if (!entry.is_missing() && (entry.offset > shard_bytes || entry.bytes > shard_bytes - entry.offset)) {
      return corrupt("{}: shard index: chunk {} is beyond the end", subject, i);
    }
    entries[i] = entry;
  }
  return entries;
}

std::string encode_shard(const Sharding& sharding, std::span<const std::optional<std::string>> chunks) {
  const bool is_first = sharding.index_at == Sharding::IndexAt::start;
  std::uint64_t at =
      is_first ? chunks.size() * kEntryBytes + (sharding.index_has_crc ? kIndexCrcBytes : 0) : 0;
  std::vector<ShardEntry> entries(chunks.size());
  std::string data;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!chunks[i]) continue;
    entries[i] = {at, chunks[i]->size()};
    at += chunks[i]->size();
    data += *chunks[i];
  }
  const std::string index = index_of(sharding, entries);
  return is_first ? index + data : data + index;
}

}  // namespace stoker::arrays
