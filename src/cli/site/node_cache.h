// The cache of datasets on this node, as its site names it.
#pragma once

#include <string_view>

#include "base/file.h"
#include "stoker/bytes.h"

namespace stoker::cli {

/// A cache, and how its site lets it be used. Quota 0: no limit but the disk.
struct NodeCache {
  Path folder;
  ByteCount quota;
  bool is_shared = false;  ///< other users of the node may copy from it
};
/// The cache of this node: `requested`, else STOKER_CACHE, else in `storage.cache` of the site of that name
/// (Job::site), else on the node-local disk. Without the site's folder, its quota does not apply.
NodeCache node_cache(const Path& requested, std::string_view site);

}  // namespace stoker::cli
