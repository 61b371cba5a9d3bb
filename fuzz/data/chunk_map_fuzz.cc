// The chunk map on any bytes: rejected, or consistent, unchanged after a round trip, and every decompressed
// byte reads as something or as an error, with any coder. The first eight bytes are the map's length; the
// shard follows the map.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "codec/chunks/chunk_reader.h"
#include "codec/load.h"
#include "dataset/coders.h"

using namespace stoker;
using namespace stoker::codec;
using namespace stoker::dataset;

namespace {

// The result does not depend on the cached content.
void read_some(const ChunkMap& map, const Path& shard) {
  constexpr std::uint64_t kMost = 1u << 16;
  using CacheContent = ChunkReader::CacheContent;
  const auto cache = std::make_shared<ChunkCache>(ByteCount{1u << 20});
  const ChunkReader member_reader(map, cache, "fuzz", CacheContent::member);
  const ChunkReader record_reader(map, cache, "fuzz", CacheContent::records);
  const auto file = codec::ShardFile::open(shard);
  if (!file.ok()) std::abort();
  std::string out(std::min(kMost, map.bytes()), '\0');
  std::string same(out.size(), '\0');
  for (const std::uint64_t at : {std::uint64_t{0}, map.bytes() - out.size(), map.bytes() / 2}) {
    const std::uint64_t length = std::min<std::uint64_t>(out.size(), map.bytes() - at);
    const auto read = [&](const ChunkReader& reader, std::string& into) {
      return reader.read(*file, at, std::as_writable_bytes(std::span(into)).first(length)).ok();
    };
    const bool is_read = read(member_reader, out);
    if (read(record_reader, same) != is_read) std::abort();
    if (is_read && out.substr(0, length) != same.substr(0, length)) std::abort();
    member_reader.will_need(*file, at, length);
    if (length > 0) (void)map.block(at);
    (void)map.read_key(at);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempDirectory folder;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size < sizeof(std::uint64_t)) return 0;
  const auto length = std::min<std::uint64_t>(load<std::uint64_t>(bytes, 0), size - sizeof(std::uint64_t));
  const auto shard = bytes.subspan(sizeof(std::uint64_t) + length);
  const auto map =
      ChunkMap::parse(bytes.subspan(sizeof(std::uint64_t), length), shard.size(), "fuzz", parse_any_coder);
  if (!map.ok()) return 0;
  const std::string text = map->encode();
  const auto again = ChunkMap::parse(std::as_bytes(std::span(text)), shard.size(), "fuzz", parse_any_coder);
  if (!again.ok() || again->bytes() != map->bytes() || again->encode() != text) std::abort();
  const ChunkMap::Totals sum = map->totals();
  constexpr std::uint64_t kSmall = 1u << 20;
  if (sum.largest > kSmall || map->bytes() == 0) return 0;
  for (const ChunkMap::Array& array : map->arrays()) {
    if (array.row_bytes > kSmall || array.decoded_chunk_bytes > kSmall) return 0;
  }
  (void)map->max_sample_chunk_bytes();
  (void)map->cache_bytes_in_read_order();
  const std::string content(reinterpret_cast<const char*>(shard.data()), shard.size());
  if (!write_file(folder / "shard", content).ok()) std::abort();
  read_some(*map, folder / "shard");
  return 0;
}
