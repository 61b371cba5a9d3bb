// Unpacks LitData chunks with samples compressed inside the file, one by one or in batches. Thread-safe: no
// state.
//
//   LDFZ01\0\0, u16 version 1, u16 0, u32 samples, u32 samples of a batch, u32 batches
//   u32 offsets[samples + 1] in the unpacked data
//   batches: u32 first sample, u32 samples, u64 offset, u32 packed bytes, u32 unpacked bytes
#pragma once

#include <cstdint>
#include <string>

#include "archive/streams/stream_rows.h"
#include "archive/tar.h"
#include "base/file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::archive {

/// A chunk to read.
struct StreamFile {
  ReadAt read;
  std::uint64_t size = 0;
  std::string subject;  ///< begins messages
};

/// The destination of unpacked samples.
struct StreamTarget {
  File& file;
  std::uint64_t most = 0;  ///< bytes that may be written
};

/// Writes the samples of a LitData chunk that are compressed inside it (StreamLayout::zstd_samples,
/// zstd_batches), and returns their offsets in the target. Corrupt for damage, NoSpace beyond the target's
/// limit, Cancelled when `progress` requests a stop.
Result<StreamOffsets> unpack_stream(const StreamFile& from, StreamLayout layout, StreamTarget to,
                                    const Progress& progress);

}  // namespace stoker::archive
