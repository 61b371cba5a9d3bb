// Compares the GPUs of this machine with the job's request. For preflight.cc only. Functions without state.
#pragma once

#include "preflight/notes.h"

namespace stoker::preflight {

/// A fact about the GPUs here, if there are some or the job asks for some. A finding if a job that runs here
/// asks for more.
void check_gpus(const job::Job& job, const HostContext& host, Notes& notes);

}  // namespace stoker::preflight
