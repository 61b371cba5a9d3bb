// Unpacks an archive into a folder of a node's own disk, by several threads: tar, tar.zst, tar.gz, zip. Safe
// against what archives of others may hold (listing.h). Used by `stoker stage`. Thread-safe: no state.
#pragma once

#include "base/progress.h"
#include "base/status.h"
#include "stage/listing.h"
#include "stage/moved.h"

namespace stoker::stage {

struct UnpackOptions {
  OutsideLinks links = OutsideLinks::refused;
  int threads = 0;  ///< 0: as many as cores, at most 16
};

/// Unpacks into `folder`, which must be there; what the archive has at its top must not be there yet. Nothing
/// of it is seen there before all of it is there; nothing is left on failure. Owners are not kept, nor bits
/// of setuid. Invalid or Corrupt for an archive that must not be unpacked, NoSpace before anything is
/// written.
Result<Moved> unpack(const Path& archive, const Path& folder, const UnpackOptions& options,
                     Progress& progress);

}  // namespace stoker::stage
