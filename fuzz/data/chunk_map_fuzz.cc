// The map of a packed shard's chunks on any bytes: refused, or what it says of itself holds, it is the same
// after it was written again, and every unpacked byte reads as something or as an error, whichever coder its
// chunks have. The first eight bytes say how long the map is, the shard is behind it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "format/chunked/chunk_reader.h"
#include "format/load.h"

using namespace stoker;
using namespace stoker::formats;

namespace {

// Whatever is kept of chunks, the same comes out.
void read_some(const ChunkMap& map, const Path& shard) {
  constexpr std::uint64_t kMost = 1u << 16;
  using Keep = ChunkReader::Keep;
  const auto cache = std::make_shared<ChunkCache>(ByteCount{1u << 20});
  const ChunkReader of_members(map, cache, "fuzz", Keep::member);
  const ChunkReader of_records(map, cache, "fuzz", Keep::records);
  const auto file = formats::ShardFile::open(shard);
  if (!file.ok()) std::abort();
  std::string out(std::min(kMost, map.bytes()), '\0');
  std::string same(out.size(), '\0');
  for (const std::uint64_t at : {std::uint64_t{0}, map.bytes() - out.size(), map.bytes() / 2}) {
    const std::uint64_t length = std::min<std::uint64_t>(out.size(), map.bytes() - at);
    const auto read = [&](const ChunkReader& reader, std::string& into) {
      return reader.read(*file, at, std::as_writable_bytes(std::span(into)).first(length)).ok();
    };
    const bool is_read = read(of_members, out);
    if (read(of_records, same) != is_read) std::abort();
    if (is_read && out.substr(0, length) != same.substr(0, length)) std::abort();
    of_members.will_need(*file, at, length);
    if (length > 0) (void)map.block(at);
    (void)map.turn(at);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempDirectory folder;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size < sizeof(std::uint64_t)) return 0;
  const auto length = std::min<std::uint64_t>(load<std::uint64_t>(bytes, 0), size - sizeof(std::uint64_t));
  const auto shard = bytes.subspan(sizeof(std::uint64_t) + length);
  const auto map = ChunkMap::parse(bytes.subspan(sizeof(std::uint64_t), length), shard.size(), "fuzz");
  if (!map.ok()) return 0;
  const std::string text = map->encode();
  const auto again = ChunkMap::parse(std::as_bytes(std::span(text)), shard.size(), "fuzz");
  if (!again.ok() || again->bytes() != map->bytes() || again->encode() != text) std::abort();
  const ChunkMap::Sum sum = map->sum();
  constexpr std::uint64_t kSmall = 1u << 20;
  if (sum.largest > kSmall || map->bytes() == 0) return 0;
  for (const ChunkMap::Array& array : map->arrays()) {
    if (array.row_bytes > kSmall || array.held_bytes > kSmall) return 0;
  }
  (void)map->most_for_a_sample();
  (void)map->held_for_turns();
  const std::string content(reinterpret_cast<const char*>(shard.data()), shard.size());
  if (!write_file(folder / "shard", content).ok()) std::abort();
  read_some(*map, folder / "shard");
  return 0;
}
