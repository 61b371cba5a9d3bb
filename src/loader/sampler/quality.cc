#include "loader/sampler/quality.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stoker::loader {
namespace {

// Mean number of different shards in windows of `length` positions.
double different_shards(const std::vector<std::uint32_t>& shard_at, std::size_t shards,
                        std::uint64_t length) {
  std::vector<std::uint64_t> seen_in(shards, 0);
  std::uint64_t stretches = 0, different = 0;
  for (std::size_t begin = 0; begin < shard_at.size(); begin += length) {
    ++stretches;
    const std::size_t end = std::min<std::size_t>(begin + length, shard_at.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (seen_in[shard_at[i]] == stretches) continue;
      seen_in[shard_at[i]] = stretches;
      ++different;
    }
  }
  return static_cast<double>(different) / static_cast<double>(stretches);
}

}  // namespace

ShuffleQuality measure_shuffle(const EpochOrder& order, std::span<const std::uint64_t> shards,
                               std::uint64_t batch) {
  std::vector<std::uint64_t> ends;
  std::uint64_t sum = 0;
  for (std::uint64_t samples : shards) ends.push_back(sum += samples);
  const auto n = static_cast<double>(order.samples());
  std::vector<std::uint32_t> shard_at;
  double moved = 0;
  for (std::uint64_t position = 0; position < order.samples(); ++position) {
    const std::uint64_t sample = order.at(position);
    moved += std::abs(static_cast<double>(position) - static_cast<double>(sample));
    shard_at.push_back(
        static_cast<std::uint32_t>(std::upper_bound(ends.begin(), ends.end(), sample) - ends.begin()));
  }
  // A full shuffle's batch misses a shard of share p with probability (1 - p)^batch.
  double expected = 0;
  const auto in_batch = static_cast<double>(std::min(batch, order.samples()));
  for (std::uint64_t samples : shards)
    expected += 1 - std::pow(1 - static_cast<double>(samples) / n, in_batch);
  return {moved / n / (n / 3), different_shards(shard_at, shards.size(), batch) / expected,
          different_shards(shard_at, shards.size(), 1024)};
}

}  // namespace stoker::loader
