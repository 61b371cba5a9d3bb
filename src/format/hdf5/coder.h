// HDF5's filters as a coder of chunks that lie in a shard. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "format/chunked/coders.h"
#include "format/hdf5/describe.h"

namespace stoker::formats::hdf5 {

/// REQUIRES: check_filters() of them. Every `swap_unit` bytes are turned round, 1 for none.
/// With `member` the elements are that member of the records that are stored.
std::shared_ptr<const ChunkCoder> chunk_coder(std::vector<Filter> filters, std::size_t swap_unit,
                                              std::optional<RecordMember> member = {});

}  // namespace stoker::formats::hdf5
