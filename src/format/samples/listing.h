// Which arrays an HDF5 or Zarr file holds, whatever they are. Used where a file is shown. Thread-safe: no
// state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/chunks/box.h"
#include "format/chunks/element_type.h"
#include "format/samples/layout.h"

namespace stoker::formats {

struct ListedArray {
  std::string name;  ///< its path; "" for a Zarr store that is an array itself
  Extents shape;
  ElementType type;
  Extents chunks;   ///< what is unpacked at once; empty where the elements lie in one piece
  Status readable;  ///< or why it is not read: then nothing but its name is known
};

struct ArrayListing {
  std::vector<ListedArray> arrays;  ///< sorted by name
  std::size_t unseen = 0;           ///< so many more there are behind these
};

/// At most `most` of a file's arrays. Errors as SampleArrays::open(); an array that is not read is none.
Result<ArrayListing> list_arrays(const Path& file, ArrayFormat format, std::size_t most);

}  // namespace stoker::formats
