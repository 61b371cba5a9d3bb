// The clock of a filesystem, with which ages of its files are computed: clocks of hosts differ, and a file
// server has its own. Thread-safe: no state.
#pragma once

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::record {

/// Unix seconds, by the modification time of a file that it creates in `folder` and removes.
Result<double> filesystem_time(const Path& folder);
/// Modification time of the file or link itself, in Unix seconds.
Result<double> modified_at(const Path& path);

/// Whether the owner of `file`, who touches it regularly, was silent for less than `limit_s`. A time in the
/// future counts as silence as much as one in the past: a clock was set back. False if the file is gone.
bool is_recent(const Path& file, double now, double limit_s);

}  // namespace stoker::record
