// Notes of a profile about logs of NCCL. Thread-safe: no state.
#pragma once

#include "profile/nccl/nccl_log.h"
#include "profile/profile.h"

namespace stoker::profile {

/// What the logs lack: durations, damaged lines, unreadable logs. Nothing without lines of NCCL.
inline void note_nccl_lines(const NcclLines& nccl, Profile& profile) {
  if (!nccl.problem.empty()) profile.notes.push_back(nccl.problem);
  if (nccl.lines > nccl.timed) profile.notes.push_back(message("lines of NCCL have sizes, but no durations"));
  if (nccl.rejected > 0)
    profile.notes.push_back(
        message("damaged lines of NCCL skipped: {} (NCCL_DEBUG_FILE=nccl.%h.%p keeps processes apart)",
                nccl.rejected));
}

}  // namespace stoker::profile
