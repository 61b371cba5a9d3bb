// Samples that are windows over the arrays of an HDF5 or Zarr file: time series, climate grids, volumes.
// Nothing is copied: a sample says which box of which arrays it is. Used by index builders. Thread-safe: no
// state. docs/commands/data-index.md#windows
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/shard_scan.h"

namespace stoker::data {

/// A window along one dimension.
struct WindowAxis {
  std::uint64_t axis = 0;
  std::uint64_t size = 1;
  std::uint64_t step = 1;
};

/// "0:24:6": axis, size, step; without the last the windows lie side by side. Invalid for another text.
Result<WindowAxis> parse_window_axis(std::string_view text);

struct WindowOptions {
  std::vector<WindowAxis> axes;        ///< the others are taken whole
  std::vector<std::string> variables;  ///< empty: all arrays of the largest one's shape
  std::uint64_t lead = 0;  ///< a sample has a target: so many elements behind the window's last one, along
                           ///< the first of `axes`; 0: none
  std::uint64_t lead_size = 1;       ///< elements of the target along that axis
  std::vector<std::string> targets;  ///< of which arrays; empty: of `variables`
  enum class Variables { apart, stacked } layout = Variables::apart;  ///< a file each, or one of all
};

/// One sample for each place of the window, those that begin in one chunk side by side: `npy`, or
/// `<name>.npy` for each of several variables, and `target.npy` with a lead. Invalid for windows that do not
/// fit, arrays that are not there or of different shapes.
Result<ShardScan> scan_windows(const Path& file, const std::string& stem, const WindowOptions& options);

}  // namespace stoker::data
