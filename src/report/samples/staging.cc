#include "report/samples/staging.h"

#include <algorithm>

#include "record/run_events.h"

namespace stoker::report {

void add_staging(int attempt, const record::EventLog& log, RunFacts& facts) {
  StagingFacts sum{.attempt = attempt};
  for (const record::Event& event : log.events) {
    const auto staged = record::staged(event);
    if (!staged || staged->is_stage_out) continue;
    const double received = static_cast<double>(std::max<std::int64_t>(0, staged->received_bytes));
    sum.nodes += 1;
    sum.received += received;
    sum.read += std::max(0.0, static_cast<double>(staged->bytes) - received);
    sum.cached += static_cast<double>(std::max<std::int64_t>(0, staged->cached_bytes));
    sum.seconds = std::max(sum.seconds, staged->seconds);
  }
  if (sum.read + sum.received + sum.cached > 0) facts.staging.push_back(sum);
}

}  // namespace stoker::report
