// Converts Status to Python exceptions (python/stoker/errors.py). Callers hold the GIL.
#pragma once

#include <utility>

#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::python {

/// Raises the exception for the status code, with message and cure. REQUIRES: !status.ok().
[[noreturn]] void raise(const Status& status);

/// The value, or raises the error.
template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

/// Maximum delay of a Python signal handler during C++ calls.
constexpr auto kSignalPollInterval = std::chrono::milliseconds(50);

}  // namespace stoker::python
