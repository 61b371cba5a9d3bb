#include "record/staged_data.h"

#include <algorithm>
#include <set>

#include "record/run_events.h"

namespace stoker::record {

void StagedData::add(std::uint64_t bytes, std::uint64_t received_bytes, std::uint64_t cached_bytes) {
  read += bytes - std::min(bytes, received_bytes);
  received += received_bytes;
  cached += cached_bytes;
}

std::optional<StagedData> staged_data(const EventLog& log) {
  const auto positive = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  };
  StagedData sum;
  std::set<int> nodes;  // a node that copies beside the ranks has two events
  for (const Event& event : log.events) {
    const auto one = staged(event);
    if (!one || one->is_stage_out) continue;
    nodes.insert(one->node);
    sum.add(positive(one->bytes), positive(one->received_bytes), positive(one->cached_bytes));
    sum.seconds = std::max(sum.seconds, one->seconds);
  }
  sum.nodes = nodes.size();
  return sum.read + sum.received + sum.cached > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace stoker::record
