// Shared by the bench programs. No state.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "stoker/status.h"

namespace stoker::bench {

/// Prints the reason with the program's name to standard error and exits.
[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

template <typename T>
T value_or_fail(Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return std::move(*result);
}

}  // namespace stoker::bench
