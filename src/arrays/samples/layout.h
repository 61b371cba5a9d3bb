// The layout of samples as arrays, the same in HDF5 and Zarr: one array with the bytes of all files, and
// arrays of ranges in it. See docs/formats/sample-arrays.md.
#pragma once

#include <string_view>

namespace stoker::arrays {

/// The container of the arrays.
enum class ArrayFormat {
  hdf5,
  zarr,   ///< written as version 3
  zarr_2  ///< for writing only: readers detect the version
};

constexpr std::string_view kSampleBytes = "bytes";   ///< uint8 [B]: files, one after another; then keys
constexpr std::string_view kSampleFiles = "files";   ///< group with one uint64 [N, 2] per kind of file
constexpr std::string_view kSampleKeys = "key";      ///< uint64 [N, 2]
constexpr std::string_view kSampleLabels = "label";  ///< int64 [N], -1 for none

}  // namespace stoker::arrays
