// From Status to Python's exceptions (python/stoker/errors.py). Callers hold the GIL.
#pragma once

#include "base/status.h"

namespace stoker::python {

/// Raises the exception of the status's code, with its text and cure. REQUIRES: !status.ok().
[[noreturn]] void raise(const Status& status);

}  // namespace stoker::python
