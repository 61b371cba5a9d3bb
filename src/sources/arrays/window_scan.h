// Samples that are windows over the arrays of an HDF5 or Zarr file: time series, climate grids, volumes.
// Nothing is copied: a sample refers to a box of its arrays. Used by index builders. Thread-safe: no state.
// docs/commands/data-index.md#windows
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "sources/shard_scan.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A window along one dimension.
struct WindowAxis {
  std::uint64_t axis = 0;
  std::uint64_t size = 1;
  std::uint64_t step = 1;
};

/// "0:24:6": axis, size, step; the default step is the size. Invalid for other texts.
Result<WindowAxis> parse_window_axis(std::string_view text);

struct WindowOptions {
  std::vector<WindowAxis> axes;        ///< other axes keep their size
  std::vector<std::string> variables;  ///< empty: all arrays of the largest one's shape
  std::uint64_t lead = 0;       ///< distance of the target from the window's last element, along the first of
                                ///< `axes`; 0: no target
  std::uint64_t lead_size = 1;  ///< elements of the target along that axis
  std::vector<std::string> targets;  ///< arrays of the target; empty: `variables`
  /// one file per variable, or one for all
  enum class Variables { apart, stacked } layout = Variables::apart;
};

/// One sample per window position, grouped by chunk: `npy`, or `<name>.npy` for each of several variables,
/// and `target.npy` with a lead. Invalid for windows that do not fit, and for missing arrays or different
/// shapes.
Result<ShardScan> scan_windows(const Path& file, const std::string& stem, const WindowOptions& options);

}  // namespace stoker::sources
