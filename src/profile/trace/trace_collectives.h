// CollectiveTable of a trace: kernels of NCCL with their arguments, and spans of gloo. Thread-safe: no state.
#pragma once

#include "profile/collectives.h"
#include "profile/trace/event_stream.h"

namespace stoker::profile {

/// The process of a file.
struct TraceInfo {
  int rank = -1;       ///< -1: unknown
  int world_size = 0;  ///< 0: unknown
  int groups = 0;      ///< number of process groups
};

/// Parses the value of "distributedInfo".
TraceInfo parse_distributed_info(std::string_view json);

/// The kind of the collective: from the arguments of a kernel, or of a span of gloo.
CollectiveKind collective_of(const TraceEvent& event, const TraceInfo& info);

}  // namespace stoker::profile
