// The far side of a transfer by stoker: `stoker remote`, which far_side.sh starts. Main thread only.
#pragma once

#include "launch/remote/serve.h"
#include "stoker/status.h"

namespace stoker::transfer {

/// Answers the requests of protocol.h from `in` to `out_fd` until the end of the input. Unavailable if the
/// output is closed.
Status serve(launch::Incoming& in, int out_fd);

}  // namespace stoker::transfer
