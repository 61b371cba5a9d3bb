// The end of a CSV file of a run as a table, however long the file is. Thread-safe: no state.
#pragma once

#include <optional>

#include "base/status.h"
#include "record/metrics.h"

namespace stoker::observe {

/// The header and the last lines (16 KiB of them) as one small table; nothing if the file is absent or no
/// table, or has no row yet.
std::optional<record::MetricTable> read_tail(const Path& path);

}  // namespace stoker::observe
