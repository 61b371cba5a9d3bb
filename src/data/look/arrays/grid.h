// Arrays of numbers that windows are over, of an HDF5 or Zarr file, a .npz archive or of .npy files. Used by
// window_scan. Thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "format/chunked/chunk_map.h"
#include "format/chunks/box.h"

namespace stoker::data {

struct GridArray {
  std::string name;
  DType type = DType::f32;
  formats::Extents shape;  ///< at least one dimension
};

class Grid {
 public:
  /// Of a file that is called as HDF5 or Zarr, or as .npz: the arrays with as many rows as the largest.
  /// Errors as RowArrays::open(); Invalid, with a cure, for an archive that is compressed or holds several
  /// splits.
  static Result<std::unique_ptr<Grid>> open(const Path& file);
  virtual ~Grid() = default;

  const std::vector<GridArray>& arrays() const { return arrays_; }
  /// Where the chunks of array `number` lie among all bytes of parts(). Invalid, saying why, where they lie
  /// in no one file.
  virtual Result<formats::ChunkedArray> chunked(std::size_t number) const = 0;
  /// The files, one behind another; empty for the one file.
  virtual Result<std::vector<formats::ShardPart>> parts() const = 0;

 protected:
  std::vector<GridArray> arrays_;
};

/// Files of a folder that are grids of the first of `variables`: `t2m.npy` and `train.t2m.npy` for "t2m", or
/// without any all .npy files. Sorted by name.
std::vector<std::string> npy_grids(const std::vector<std::string>& files,
                                   const std::vector<std::string>& variables);
/// What such a file has before the variable: "train." of "train.t2m.npy".
std::string_view before_variable(std::string_view file, const std::vector<std::string>& variables);

/// The array of a .npy file, called as it is without ending; or where `names` are given, of these in files
/// beside it: "u10" in `train.u10.npy` beside `train.t2m.npy`, which names[0] is "t2m" of. NotFound for a
/// file that is missing, Invalid for arrays that are not read: of objects, of records, in Fortran order.
Result<std::unique_ptr<Grid>> open_npy_grid(const Path& file, const std::vector<std::string>& names);

}  // namespace stoker::data
