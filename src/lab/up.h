// Creates a lab. Used by `stoker lab up`. Only one process at a time per lab.
#pragma once

#include <string_view>

#include "lab/lab.h"
#include "stoker/progress.h"

namespace stoker::lab {

/// Creates the lab and returns when all its nodes are idle. Removes it on failure. Exists if a lab of this
/// name exists; Unavailable with the install command for missing packages, or if the kernel refuses
/// namespaces; NoSpace on a full disk; Invalid for invalid options.
Result<Lab> up(const Options& options, const Progress& progress);

}  // namespace stoker::lab
