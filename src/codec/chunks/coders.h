// The coders of plain elements and of pages. HDF5, Zarr and Parquet add their own: dataset/coders.h parses
// all of them. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "codec/chunks/chunk_map.h"
#include "stoker/status.h"

namespace stoker::codec {

/// Uncompressed elements; every `swap_unit` bytes are byte-swapped, 1 for native order.
std::shared_ptr<const ChunkCoder> plain_coder(std::size_t swap_unit);
/// Parquet pages; each page has its own codec.
std::shared_ptr<const ChunkCoder> page_coder();

}  // namespace stoker::codec
