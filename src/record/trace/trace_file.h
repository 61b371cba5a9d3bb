// Reads what Trace writes (trace.h): the steps of one rank with their phases and exchanges, for pictures of
// them. Thread-safe: no state. Layout: docs/formats/run.md#trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace stoker::record {

/// Something that took a while. Times are microseconds since 1970.
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

/// In the order in which they ended. Of exchanges those that ended.
struct TraceFile {
  std::vector<TraceStep> steps;
  std::vector<TraceSpan> phases;
  std::vector<TraceSpan> exchanges;
};

/// The bound on what is read of a trace: some ten thousand steps.
inline constexpr ByteCount kTraceLimit = 64_MiB;

/// Lines that are no event of ours, such as a torn last one, are passed over: Corrupt only when there is no
/// whole step.
Result<TraceFile> parse_trace(std::string_view subject, std::string_view text);
/// The same from the file's first kTraceLimit bytes.
Result<TraceFile> read_trace(const Path& file);

}  // namespace stoker::record
