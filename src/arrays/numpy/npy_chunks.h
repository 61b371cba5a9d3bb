// The elements of a .npy file as a chunked array: each chunk is about one MiB and contiguous. Used by windows
// and rows over NumPy files. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "codec/chunks/box.h"
#include "codec/chunks/chunk_map.h"
#include "stoker/status.h"

namespace stoker::arrays {

struct NpyElements {
  std::string name;
  codec::Extents shape;  ///< no dimension is 0
  std::uint32_t element_bytes = 1;
  std::size_t swap_unit = 1;  ///< bytes that are swapped together; 1 for none
  std::uint64_t begin = 0;    ///< of the first element, in the concatenated parts of the shard
};

/// Invalid, beginning with `subject`, if it is too large. REQUIRES: C order.
Result<codec::ChunkedArray> npy_chunks(const NpyElements& elements, std::string_view subject);

}  // namespace stoker::arrays
