// Records about collectives that ranks wait in: the comparison of flight recorders, and the dumps of torch's
// own recorder beside logs. Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnose/failure.h"

namespace stoker::diagnose {

/// Adds the lines of record/trace/desync.h as records of the flight recorder, each with the rank that it
/// names as the cause, if any.
void add_collective_records(const std::vector<std::string>& lines, FailureFacts& facts);

/// Compares dumps of torch's flight recorder, by rank, and adds the differences. Dumps that cannot be read
/// are added to facts.unreadable.
void add_torch_dumps(const std::map<int, Path>& files, FailureFacts& facts);

/// The same for the dumps in `path`, a folder, or for those whose names differ from that of the file `path`
/// in the final number only: the rank. True if there are any.
bool find_torch_dumps(const Path& path, FailureFacts& facts);

}  // namespace stoker::diagnose
