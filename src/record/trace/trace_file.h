// Reads the files written by Trace (trace.h): the steps of one rank with their phases and collectives, for
// figures. Thread-safe: no state. Layout: docs/formats/run.md#trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::record {

/// A time span, in microseconds since 1970.
struct TraceSpan {
  std::string name;
  double begin_us = 0;
  double end_us = 0;
};

struct TraceStep {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  double begin_us = 0;
  double end_us = 0;
};

/// Sorted by end. Contains only collectives that ended.
struct TraceFile {
  std::vector<TraceStep> steps;
  std::vector<TraceSpan> phases;
  std::vector<TraceSpan> exchanges;
};

/// Maximum number of bytes read of a trace: about ten thousand steps.
inline constexpr ByteCount kTraceLimit = 64_MiB;

/// Ignores lines that are not known events, such as an incomplete last one; Corrupt only if there is no
/// complete step.
Result<TraceFile> parse_trace(std::string_view subject, std::string_view text);
/// Same, from the first kTraceLimit bytes of the file.
Result<TraceFile> read_trace(const Path& file);

}  // namespace stoker::record
