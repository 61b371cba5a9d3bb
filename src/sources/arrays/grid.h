// Arrays for windows, from an HDF5 or Zarr file, a .npz archive or .npy files. Used by window_scan.
// Thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "codec/chunks/box.h"
#include "codec/chunks/chunk_map.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::sources {

struct GridArray {
  std::string name;
  DType type = DType::f32;
  codec::Extents shape;  ///< at least one dimension
};

/// An array that cannot be cut into windows.
struct UnusableGridArray {
  std::string name;
  std::string reason;  ///< "12 rows, not 50", "text"
};

class Grid {
 public:
  /// Opens an HDF5, Zarr or .npz file by its name: the arrays with as many rows as the largest one. Fails
  /// like RowArrays::open(); Invalid, with a cure, for a compressed archive or one with several splits.
  static Result<std::unique_ptr<Grid>> open(const Path& file);
  virtual ~Grid() = default;

  const std::vector<GridArray>& arrays() const { return arrays_; }
  const std::vector<UnusableGridArray>& unusable_arrays() const { return unusable_; }
  /// The chunks of array `number` in the concatenated parts(). Invalid, with the reason, if they are not in
  /// one file.
  virtual Result<codec::ChunkedArray> chunked(std::size_t number) const = 0;
  /// The files in order of concatenation; empty for a single file.
  virtual Result<std::vector<codec::ShardPart>> parts() const = 0;

 protected:
  std::vector<GridArray> arrays_;
  std::vector<UnusableGridArray> unusable_;
};

/// Files of a folder that are grids of the first of `variables`: `t2m.npy` and `train.t2m.npy` for "t2m"; all
/// .npy files without variables. Sorted by name.
std::vector<std::string> npy_grids(const std::vector<std::string>& files,
                                   const std::vector<std::string>& variables);
/// The prefix before the variable: "train." of "train.t2m.npy".
std::string_view before_variable(std::string_view file, const std::vector<std::string>& variables);

/// The array of a .npy file, named after the file; with `names` these arrays in sibling files: "u10" in
/// `train.u10.npy` next to `train.t2m.npy`, where names[0] is "t2m". NotFound for a missing file, Invalid for
/// unsupported arrays: objects, records, Fortran order.
Result<std::unique_ptr<Grid>> open_npy_grid(const Path& file, const std::vector<std::string>& names);

}  // namespace stoker::sources
