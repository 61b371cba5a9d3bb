// Sources from folders. Used by list_source(). Blocks on the storage.
#pragma once

#include <memory>

#include "sources/files/tree.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Lists a source whose samples, labels and splits come from its folders.
Result<PackSource> list_by_folders(std::unique_ptr<SourceTree> tree, const SourceOptions& options,
                                   const Progress& progress);

}  // namespace stoker::sources
