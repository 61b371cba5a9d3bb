// HDF5's filters as a coder of stored chunks. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/hdf5/describe.h"
#include "codec/chunks/coders.h"

namespace stoker::arrays::hdf5 {

/// REQUIRES: check_filters(). Every `swap_unit` bytes are byte-swapped, 1 for native order. With `member`,
/// the elements are that member of the stored records.
std::shared_ptr<const codec::ChunkCoder> chunk_coder(std::vector<Filter> filters, std::size_t swap_unit,
                                                     std::optional<RecordMember> member = {});

/// The codec::CoderParser of kinds "hdf5" and "record".
Result<std::shared_ptr<const codec::ChunkCoder>> parse_hdf5_coder(std::string_view kind,
                                                                  const std::string& text,
                                                                  const codec::ChunkedArray& array,
                                                                  std::string_view subject);

}  // namespace stoker::arrays::hdf5
