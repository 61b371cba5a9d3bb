// Writes one safetensors file of a share from memory: with direct I/O where supported, with a CRC-32C for
// each block, synced, under a temporary name until it is complete. Used by the writer thread of Saver.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "archive/safetensors.h"
#include "base/thread.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save/copy_progress.h"
#include "checkpoint/save/plan.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Layout of one file: header, and the position of each slice in its data.
struct ShardPlan {
  archive::SafetensorsPlan file;
  std::vector<std::size_t> order;  ///< slice (index in PartPlan::own_slices) of each header entry
};

/// Layout of this rank's file of a part. The header has an empty string at kSaveKey; each save puts its name
/// there (archive::header_with_metadata), which identifies the save of a file.
Result<ShardPlan> plan_shard(const PartPlan& part);

/// The pieces of that file for the manifest.
std::vector<Piece> pieces_of(const ShardPlan& shard, const PartPlan& part);

/// Data of a file after its header.
struct ShardData {
  /// Starts on a page; the memory after its last byte up to the end of the page belongs to it.
  std::span<const std::byte> bytes;
  /// Filled part; outlives the call.
  const CopyProgress& copy_progress;
  /// By then all of it must be filled.
  Deadline deadline;
};

/// Writes header and `data` to `<folder>/<path>.part`, syncs it and renames it. Removes it on an error.
/// Cancelled if `stop` is requested between blocks.
Result<std::vector<std::uint32_t>> write_shard(const Path& file, std::string_view header,
                                               const ShardData& data, const StopToken& stop);

}  // namespace stoker::checkpoint
