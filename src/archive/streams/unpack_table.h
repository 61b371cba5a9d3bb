// Converts LitData chunks whose samples are rows of an Arrow table (LitData 0.2.70 and later). Thread-safe:
// no state.
//
//   u32 samples, u32 offsets[samples + 1], all equal to the end of the offsets
//   an Arrow IPC file, or stream
//   u32 size of the table, LDARW01\0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "archive/streams/unpack_stream.h"

namespace stoker::archive {

/// The rows of a table as samples of StreamLayout::unpacked_table.
struct StreamTable {
  StreamOffsets offsets;
  std::vector<StreamColumn> columns;
};

/// Writes the rows of the Arrow table at the end of a LitData chunk with `samples` samples; nothing if it
/// has no table. Corrupt for damage, Invalid for unsupported types, NoSpace and Cancelled as above.
Result<std::optional<StreamTable>> unpack_stream_table(const StreamFile& from, std::uint64_t samples,
                                                       StreamTarget to, const Progress& progress);

}  // namespace stoker::archive
