// The elements of a .npy file as an array in chunks: each about a mebibyte and one run of the file. Used by
// windows and rows over NumPy's files. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/chunks/box.h"

namespace stoker::data {

struct NpyElements {
  std::string name;
  formats::Extents shape;  ///< no dimension is 0
  std::uint32_t element_bytes = 1;
  std::size_t swap_unit = 1;  ///< so many bytes are turned round at once; 1 for none
  std::uint64_t begin = 0;    ///< of the first one, among all bytes of the shard
};

/// Invalid, beginning with `subject`, for one that is too large. REQUIRES: C order.
Result<formats::ChunkedArray> npy_chunks(const NpyElements& elements, std::string_view subject);

}  // namespace stoker::data
