#include "stage/broadcast/piece.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace stoker::stage {
namespace {

constexpr std::uint32_t kFullyConnected = 32;

}  // namespace

std::vector<ShardPiece> divide_shards(const std::vector<std::uint64_t>& shard_bytes, ByteCount block,
                                      std::size_t most_pieces) {
  const std::uint64_t total = std::accumulate(shard_bytes.begin(), shard_bytes.end(), std::uint64_t{0});
  const std::uint64_t wanted = total / std::max<std::uint64_t>(most_pieces, 1) / block.value + 1;
  const std::uint64_t size = std::max(wanted, std::uint64_t{1}) * block.value;
  std::vector<ShardPiece> pieces;
  for (std::uint32_t shard = 0; shard < shard_bytes.size(); ++shard) {
    for (std::uint64_t offset = 0; offset < shard_bytes[shard]; offset += size)
      pieces.push_back({shard, offset, std::min(size, shard_bytes[shard] - offset)});
  }
  return pieces;
}

std::vector<std::uint32_t> swarm_neighbours(std::uint32_t node, std::uint32_t nodes) {
  std::set<std::uint32_t> found;
  if (nodes <= kFullyConnected) {
    for (std::uint32_t other = 0; other < nodes; ++other) found.insert(other);
  } else {
    for (std::uint32_t distance = 1; distance < nodes; distance *= 2) {
      found.insert((node + distance) % nodes);
      found.insert((node + nodes - distance) % nodes);
    }
  }
  found.erase(node);
  return {found.begin(), found.end()};
}

}  // namespace stoker::stage
