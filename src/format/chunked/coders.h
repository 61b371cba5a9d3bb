// What makes and reads coders of each kind. Those of HDF5, Zarr and Parquet's columns are made in
// their own folders.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/chunked/chunk_map.h"

namespace stoker::formats {

/// Nothing packs it; every `swap_unit` bytes are turned round, 1 for none.
std::shared_ptr<const ChunkCoder> plain_coder(std::size_t swap_unit);
/// Of Parquet: each page has its codec.
std::shared_ptr<const ChunkCoder> page_coder();

// Texts that ChunkCoder::to_text() gave, which may be anything: Corrupt for damage, Invalid for what is not
// read.
Result<std::shared_ptr<const ChunkCoder>> parse_hdf5_coder(std::string_view kind, const std::string& text,
                                                           const ChunkedArray& about,
                                                           std::string_view subject);
Result<std::shared_ptr<const ChunkCoder>> parse_zarr_coder(const std::string& text, const ChunkedArray& about,
                                                           std::string_view subject);

Result<std::shared_ptr<const ChunkCoder>> parse_column_coder(const std::string& text,
                                                             const ChunkedArray& about,
                                                             std::string_view subject);

}  // namespace stoker::formats
