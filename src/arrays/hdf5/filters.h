// Decodes HDF5's filters without libhdf5, in any number of threads. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "arrays/hdf5/describe.h"
#include "codec/chunks/chunk_cache.h"
#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

/// Invalid, by name, unless all filters are supported: DEFLATE, shuffle, Fletcher-32, LZF, zstd and blosc, at
/// most one compressor.
Status check_filters(const std::vector<Filter>& filters, std::string_view subject);

/// Undoes the filters of a chunk, except filters whose bit in `skipped` is set. Corrupt unless the result has
/// exactly `bytes`.
Result<codec::Buffer> undo_filters(const std::vector<Filter>& filters, std::uint32_t skipped,
                                   std::uint64_t bytes, std::span<const std::byte> stored,
                                   std::string_view subject);

/// HDF5's checksum, of 16-bit words.
std::uint32_t fletcher32(std::span<const std::byte> bytes);
/// Marc Lehmann's LZF, as in h5py.
Status decompress_lzf(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);

}  // namespace stoker::arrays::hdf5
