// Samples as arrays, the same in HDF5 and in Zarr: all files' bytes in one array, and arrays of places that
// cut it. docs/formats/sample-arrays.md describes it.
#pragma once

#include <string_view>

namespace stoker::formats {

/// What holds the arrays.
enum class ArrayFormat {
  hdf5,
  zarr,   ///< version 3 where it is written
  zarr_2  ///< to be written only: readers tell versions by themselves
};

constexpr std::string_view kSampleBytes = "bytes";   ///< uint8 [B]: files, one after another; then keys
constexpr std::string_view kSampleFiles = "files";   ///< group; in it for each kind of file uint64 [N, 2]
constexpr std::string_view kSampleKeys = "key";      ///< uint64 [N, 2]
constexpr std::string_view kSampleLabels = "label";  ///< int64 [N], -1 for none

}  // namespace stoker::formats
