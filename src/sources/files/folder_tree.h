// Source trees on disk: a folder, or a list of paths. Used by list_source(). Blocks on the storage.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sources/files/tree.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A folder on disk. Visits entries in inode order, which reduces seeks.
std::unique_ptr<SourceTree> folder_tree(std::string root, std::shared_ptr<RateLimiter> rate_limiter,
                                        Progress* progress);

/// Paths, one per line or separated by NUL bytes, as a tree below their deepest common folder.
Result<std::unique_ptr<SourceTree>> paths_tree(std::string_view text, std::string_view subject,
                                               std::shared_ptr<RateLimiter> rate_limiter, Progress& progress);

}  // namespace stoker::sources
