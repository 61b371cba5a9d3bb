// Forecasts how long files and folders take to copy to a node. Used by `stoker check`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::stage {

struct CopyForecast {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  double seconds = 0;     ///< for one reader
  bool is_whole = false;  ///< otherwise there is more: counting ended after two seconds
};

/// Counts the sources, and measures on this host how fast a large file and how fast small ones are read, past
/// the page cache. Takes up to four seconds. Files that cannot be read are left out.
CopyForecast forecast_copy(const std::vector<Path>& sources);

}  // namespace stoker::stage
