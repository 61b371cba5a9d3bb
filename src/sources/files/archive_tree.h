// Source trees in tar and zip archives. Used by list_source(). Blocks on the storage.
#pragma once

#include <memory>

#include "base/file.h"
#include "sources/files/tree.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Unpacks a compressed tar into the folder `scratch`.
Result<std::unique_ptr<SourceTree>> tar_tree(const Path& file, const Path& scratch, Progress& progress);
Result<std::unique_ptr<SourceTree>> zip_tree(const Path& file, Progress& progress);

}  // namespace stoker::sources
