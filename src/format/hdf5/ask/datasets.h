// The child's side of describe.h: asks libhdf5 and answers with JSON. Used only inside this folder, in a
// process that has no other threads.
#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "format/hdf5/api.h"
#include "format/hdf5/describe.h"

namespace stoker::formats::hdf5 {

/// {"names": [...]} or {"error": ..., "code": ...}.
std::string ask_names(const Api& h5, const Path& file);
/// {"datasets": [...]} or the same.
std::string ask_datasets(const Api& h5, const Path& file, const std::vector<std::string>& names,
                         ExternalLinks links);

}  // namespace stoker::formats::hdf5
