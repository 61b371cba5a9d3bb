// Values of variable length (text, bytes, lists of numbers), one per row of an HDF5 or Zarr array: their
// ranges among the decompressed bytes. A value; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/chunks/chunk_map.h"
#include "codec/chunks/element_type.h"

namespace stoker::codec {

struct ValueArray {
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  ChunkedArray array;                   ///< the values' bytes; some belong to no value
  std::vector<Range> places;            ///< one for each row, among the bytes of `array`, then `fill`
  ByteOrder order = ByteOrder::little;  ///< of the numbers
  std::optional<ChunkedArray> fill;     ///< the value of unwritten rows, unless it is empty
};

}  // namespace stoker::codec
