// Values of different lengths (text, bytes, lists of numbers), one for each row of an HDF5 or Zarr array:
// where each lies among the unpacked bytes of what is stored of them. Made by both formats, used by whatever
// takes them as files of samples. A value; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "format/chunked/chunk_map.h"
#include "format/chunks/element_type.h"

namespace stoker::formats {

struct ValueArray {
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  ChunkedArray array;                   ///< its bytes, among which the places are; some belong to no value
  std::vector<Place> places;            ///< one for each row
  ByteOrder order = ByteOrder::little;  ///< of numbers
};

}  // namespace stoker::formats
