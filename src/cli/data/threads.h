// The option -j, --jobs of dataset commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/arguments.h"
#include "stoker/status.h"

namespace stoker::cli {

class ThreadsOption {
 public:
  /// Declares the option with the help text `what`.
  void declare(Arguments& arguments, std::string_view what = "Use N threads (default: all cores)");
  /// The requested number; default: one per usable core, at most 16. Invalid "<command>: -j,--jobs: 0
  /// is not between 1 and 256".
  Result<int> count(std::string_view command) const;

 private:
  std::optional<std::int64_t> requested_;
};

}  // namespace stoker::cli
