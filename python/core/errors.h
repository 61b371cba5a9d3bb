// From Status to Python's exceptions (python/stoker/errors.py), and how long Python's signals wait. Callers
// hold the GIL.
#pragma once

#include <utility>

#include "base/status.h"
#include "base/time.h"

namespace stoker::python {

/// Raises the exception of the status's code, with its text and cure. REQUIRES: !status.ok().
[[noreturn]] void raise(const Status& status);

/// The value, or the exception of its absence.
template <typename T>
T take(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

/// How long a signal may wait for its handler while C++ works.
constexpr auto kSignalSlice = std::chrono::milliseconds(50);

}  // namespace stoker::python
