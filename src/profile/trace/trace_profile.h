// Profiles of traces: one file for each rank, as torch.profiler and Stoker's trainer write them, plain or
// gzip. Each moment of a step counts for one part: what the GPU does first, else what the host does. So the
// parts add up to the steps. Memory is bounded, whatever the size of a file. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "profile/profile.h"
#include "profile/records.h"
#include "stoker/status.h"

namespace stoker::profile {

/// Fills source, range, ranks, measured parts and gains, and adds the collectives. The rank of a file is that
/// of its distributedInfo, else of its name, else its place in `files`. NotFound, Invalid or Corrupt, with
/// its name, if a file cannot be read or is no trace. A file that ends early is read up to there and noted.
Status read_traces(std::span<const Path> files, const StepSelection& selection, CollectiveTable& collectives,
                   Profile& profile);

/// Whether the file begins like a trace, after decompression. False if it cannot be read.
bool looks_like_trace(const Path& file);

}  // namespace stoker::profile
