// The samples of MosaicML's shards (MDS) and LitData's chunks: a column is a file of each sample, told by the
// rules that TFRecord has; numbers are its label and its JSON. Used to index foreign shards, and as a source
// of pack. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/streams/stream_index.h"
#include "format/tar.h"

namespace stoker::data {

/// The places of an MDS shard's samples, as scan_shard() gives them. Invalid, with a cure, for columns that
/// are no files as they lie (arrays, pixels). Numbers that are no label are passed over.
Result<ShardScan> scan_mds(const formats::ReadAt& read, std::uint64_t size, const std::string& subject,
                           const std::string& stem);

/// The samples of a lone MDS shard, packed or not, which says itself what its columns are.
Result<UnpackedShard> unpack_mds(const Path& file, const Path& scratch, Progress& progress);

/// The same of a shard or chunk that an index names: compared with that, with one of the hashes too where it
/// has any that is known here. What is no file as it lies is made into one in the folder `scratch`, in a file
/// without a name: arrays .npy, pixels PNG, numbers JSON; so is what a packed shard unpacks to. Cancelled
/// when `progress` says stop, NoSpace before the disk is full.
Result<UnpackedShard> unpack_stream(const Path& folder, const formats::StreamShard& shard,
                                    const Path& scratch, Progress& progress);

}  // namespace stoker::data
