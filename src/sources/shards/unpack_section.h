// Copies the files of a chunked shard, at the places of its index, into an unnamed file, so that packing may
// read them in any order. Used by dataset_listing. Blocks on the storage. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "base/file.h"
#include "dataset/side_index.h"
#include "sources/shards/scratch_files.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

struct UnpackedSection {
  ScratchFile at;
  std::vector<std::uint64_t> offsets;  ///< in at.file, of each file of each sample, in the section's order
};

/// The folder for unnamed files, and the files in it.
struct ScratchTarget {
  const Path& folder;
  ScratchFiles& files;
};

/// Decompresses each chunk once and stores files that share their bytes once. Does not compare CRCs: a reader
/// of the copy does. Corrupt if the shard has a different size than in the index, or a damaged chunk; NoSpace
/// before the disk is full. Cancelled on stop_requested(). REQUIRES: section.chunks().
Result<UnpackedSection> unpack_section(const Path& shard, const dataset::IndexSection& section,
                                       const ScratchTarget& scratch, const Progress& progress);

}  // namespace stoker::sources
