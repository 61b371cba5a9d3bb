// Writes one safetensors file of a share from memory: past the page cache where the filesystem can, with a
// CRC-32C for each block, synced, under a temporary name until it is whole. Used by the writer thread of
// Saver.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "base/time.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save/arriving.h"
#include "checkpoint/save/plan.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

/// The layout of one file: header, and which slice lies where in its data.
struct ShardPlan {
  formats::SafetensorsPlan file;
  std::vector<std::size_t> order;  ///< slice (place in PartPlan::mine) of each entry of the header
};

/// Lays out what a rank writes of a part. The header has an empty text at kSaveKey: each save puts its name
/// there (formats::header_with), so that a file tells to which save it belongs.
Result<ShardPlan> plan_shard(const PartPlan& part);

/// The pieces of that file as the manifest lists them.
std::vector<Piece> pieces_of(const ShardPlan& shard, const PartPlan& part);

/// What a file holds behind its header.
struct ShardData {
  /// Begins on a page; the memory behind its last byte up to the end of the page belongs to it.
  std::span<const std::byte> bytes;
  /// How much of it is there; outlives the call.
  const Arriving& arriving;
  /// Until then all of it must be.
  Deadline deadline;
};

/// Writes header and `data` to `<folder>/<path>.part`, syncs it and gives it its name. Removes what it wrote
/// on an error. Cancelled when `stop` asks for it between blocks.
Result<std::vector<std::uint32_t>> write_shard(const Path& file, std::string_view header,
                                               const ShardData& data, const StopToken& stop);

}  // namespace stoker::checkpoint
