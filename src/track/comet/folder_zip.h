// Writes a zip archive of a folder. No state.
#pragma once

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::track {

/// All regular files below `folder`, uncompressed and sorted, as `archive`, which appears by rename. The same
/// files make the same bytes. Invalid beyond 65 535 files or 4 GiB.
Status zip_folder(const Path& folder, const Path& archive);

}  // namespace stoker::track
