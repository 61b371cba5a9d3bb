// Where a site keeps its storage on this host. Thread-safe: no state.
#pragma once

#include <string_view>

#include "base/file.h"
#include "base/process.h"
#include "job/site/site.h"

namespace stoker::job {

/// The folder of the site's storage of that name, such as "cache", with the values of its variables. Empty
/// without such a storage, where a variable is not set, and for a path that is not absolute then.
Path storage_folder(const Site& site, std::string_view name, const stoker::Environment& environment);

}  // namespace stoker::job
