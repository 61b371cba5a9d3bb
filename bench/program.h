// What the programs that benches run share. No state.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/status.h"

namespace stoker::bench {

/// Says why on standard error, behind the program's name, and ends it.
[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

template <typename T>
T take(Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return std::move(*result);
}

}  // namespace stoker::bench
