// The option -j, --jobs of the commands on datasets.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "cli/arguments.h"

namespace stoker::cli {

class Threads {
 public:
  /// Declares the option, which `what` explains.
  void declare(Arguments& arguments, std::string_view what = "threads (default: the cores)");
  /// As asked; else one for each core that this process may use, at most 16. Invalid "<command>: -j,--jobs: 0
  /// is not between 1 and 256".
  Result<int> count(std::string_view command) const;

 private:
  std::optional<std::int64_t> asked_;
};

}  // namespace stoker::cli
