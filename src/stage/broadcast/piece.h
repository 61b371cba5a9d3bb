// The pieces of a dataset that nodes exchange, and which nodes exchange with each other. All nodes of a job
// compute the same. Values; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"

namespace stoker::stage {

/// Consecutive blocks of a shard. The position in the list of pieces is its number: pieces that the training
/// needs first have small numbers.
struct ShardPiece {
  std::uint32_t shard = 0;  ///< in the order that divide_shards() was given
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  bool operator==(const ShardPiece&) const = default;
};

/// Divides shards of these sizes, first needed first. A piece is a multiple of `block` bytes, except the last
/// one of a shard, and at most `most_pieces` are made if shards are large enough. An empty shard has no
/// piece.
std::vector<ShardPiece> divide_shards(const std::vector<std::uint64_t>& shard_bytes, ByteCount block,
                                      std::size_t most_pieces);

/// The nodes that node `node` of `nodes` exchanges pieces with, in ascending order: all others of at most 32
/// nodes; else those at a distance of a power of two in both directions, so that any two nodes are connected
/// by few steps, without a few nodes too. The relation is symmetric.
std::vector<std::uint32_t> swarm_neighbours(std::uint32_t node, std::uint32_t nodes);

}  // namespace stoker::stage
