// Unpacks an archive into a folder on a node's local disk with several threads: tar, tar.zst, tar.gz, zip.
// Safe for untrusted archives (listing.h). Used by `stoker stage`. Thread-safe: no state.
#pragma once

#include "stage/listing.h"
#include "stage/transfer_stats.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

struct UnpackOptions {
  OutsideLinks links = OutsideLinks::refused;
  int threads = 0;  ///< 0: the number of cores, at most 16
};

/// Unpacks into `folder`, which must exist; the archive's top-level entries must not exist in it. Results
/// become visible all at once; nothing remains after a failure. Owners and setuid bits are not preserved.
/// Invalid or Corrupt for an archive that must not be unpacked, NoSpace before anything is written.
Result<TransferStats> unpack(const Path& archive, const Path& folder, const UnpackOptions& options,
                             Progress& progress);

}  // namespace stoker::stage
