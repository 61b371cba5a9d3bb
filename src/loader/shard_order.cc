#include "loader/shard_order.h"

namespace stoker::loader {

std::vector<std::uint32_t> shards_by_first_use(const dataset::SampleTable& samples, OrderOptions order,
                                               Epoch epoch) {
  if (order.shuffle == Shuffle::every_epoch || order.shuffle == Shuffle::full) return {};
  order.samples = samples.size();
  for (const dataset::IndexSection* section : samples.sections()) order.shards.push_back(section->samples());
  if (order.shuffle == Shuffle::by_chunk) order.shards = samples.samples_per_chunk();
  const auto created = EpochOrder::create(order, epoch);
  if (!created.ok()) return {};
  std::vector<std::uint32_t> shards;
  std::vector<bool> is_known(samples.sections().size());
  for (std::uint64_t i = 0; i < samples.size() && shards.size() < is_known.size(); ++i) {
    const std::uint32_t shard = samples.position(created->at(i)).shard;
    if (is_known[shard]) continue;
    is_known[shard] = true;
    shards.push_back(shard);
  }
  return shards;
}

}  // namespace stoker::loader
