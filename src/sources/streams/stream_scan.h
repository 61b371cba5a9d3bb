// Scans MosaicML's shards (MDS) and LitData's chunks: a column is a file of each sample, by the rules for
// TFRecord; numbers become its label and its JSON. Used to index foreign shards, and as a source of pack.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "archive/streams/stream_index.h"
#include "archive/tar.h"
#include "base/file.h"
#include "sources/shard_scan.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The places of an MDS shard's samples, like scan_shard(). Invalid, with a cure, for columns that need
/// conversion (arrays, pixels). Numbers except the label are skipped.
Result<ShardScan> scan_mds(const archive::ReadAt& read, std::uint64_t size, const std::string& subject,
                           const std::string& stem);

/// The samples of an MDS shard without index, compressed or not.
Result<UnpackedShard> unpack_mds(const Path& file, const Path& scratch, Progress& progress);

/// The samples of a shard or chunk in an index: compared with the index and its first supported hash.
/// Converts columns into an unnamed file in `scratch`: arrays to .npy, pixels to PNG, numbers to JSON.
/// Unpacks a compressed shard there, too. Cancelled on stop_requested(), NoSpace before the disk is full.
Result<UnpackedShard> unpack_stream(const Path& folder, const archive::StreamShard& shard,
                                    const Path& scratch, Progress& progress);

}  // namespace stoker::sources
