// The current state of a run as JSON, for `stoker top` and `stoker status`. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "observe/live.h"

namespace stoker::observe {

/// A JSON list. Unset values are null.
std::string json_of(const std::vector<LiveRank>& ranks);
std::string json_of(const std::vector<LiveNode>& nodes);
std::string json_of(const std::vector<LiveGpu>& gpus);
std::string json_of(const std::optional<record::StagedData>& staged);

}  // namespace stoker::observe
