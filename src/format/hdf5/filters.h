// HDF5's filters undone by ourselves, in any number of threads. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/chunks/chunk_cache.h"
#include "format/hdf5/describe.h"

namespace stoker::formats::hdf5 {

/// Whether all these filters can be undone: DEFLATE, shuffle, Fletcher-32, LZF, zstd and blosc, at most one
/// of them a compressor. Invalid, by name.
Status check_filters(const std::vector<Filter>& filters, std::string_view subject);

/// The `bytes` of a chunk as they were before the filters, but those whose bit in `skipped` is set. Corrupt
/// for anything that is not exactly them.
Result<Buffer> undo_filters(const std::vector<Filter>& filters, std::uint32_t skipped, std::uint64_t bytes,
                            std::span<const std::byte> stored, std::string_view subject);

/// HDF5's checksum, of 16-bit words.
std::uint32_t fletcher32(std::span<const std::byte> bytes);
/// Marc Lehmann's LZF, as h5py has it.
Status unlzf(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);

}  // namespace stoker::formats::hdf5
