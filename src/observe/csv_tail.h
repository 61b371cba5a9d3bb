// The last rows of a run's CSV file as a table, however long the file is. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>

#include "record/metrics.h"
#include "stoker/status.h"

namespace stoker::observe {

/// The header and the last lines, of `bytes` together, as one small table; nothing if the file is absent, not
/// a table, or has no rows yet.
std::optional<record::MetricTable> read_tail(const Path& path, std::uint64_t bytes = 64 * 1024);

}  // namespace stoker::observe
