// The chunk coders of all formats, as a side index names them. Thread-safe: no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codec/chunks/chunk_map.h"
#include "stoker/status.h"

namespace stoker::dataset {

/// The codec::CoderParser of every kind that a side index may hold.
Result<std::shared_ptr<const codec::ChunkCoder>> parse_any_coder(std::string_view kind,
                                                                 const std::string& text,
                                                                 const codec::ChunkedArray& array,
                                                                 std::string_view subject);

}  // namespace stoker::dataset
