// Lists the arrays of any HDF5 or Zarr file, to show it. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "arrays/samples/layout.h"
#include "base/file.h"
#include "codec/chunks/box.h"
#include "codec/chunks/element_type.h"
#include "stoker/status.h"

namespace stoker::arrays {

struct ListedArray {
  std::string name;  ///< its path; "" for a Zarr store that is an array itself
  codec::Extents shape;
  codec::ElementType type;
  codec::Extents chunks;  ///< unit of unpacking; empty if the elements are contiguous
  Status readable;        ///< or the reason that it cannot be read: then only its name is known
};

struct ArrayListing {
  std::vector<ListedArray> arrays;  ///< sorted by name
  std::size_t omitted = 0;          ///< arrays beyond the limit
};

/// At most `most` of a file's arrays. Errors as SampleArrays::open(), but not for an unsupported array.
Result<ArrayListing> list_arrays(const Path& file, ArrayFormat format, std::size_t most);

}  // namespace stoker::arrays
