// The child's side of describe.h: queries libhdf5 and responds with JSON. Used only inside this folder, in a
// process without other threads.
#pragma once

#include <string>
#include <vector>

#include "arrays/hdf5/api.h"
#include "arrays/hdf5/describe.h"
#include "stoker/text.h"

namespace stoker::arrays::hdf5 {

/// {"names": [...]} or {"error": ..., "code": ...}.
std::string query_dataset_names(const Api& h5, const Path& file);
/// {"datasets": [...]} or the same.
std::string query_datasets(const Api& h5, const Path& file, const std::vector<std::string>& names,
                           ExternalLinks links);

}  // namespace stoker::arrays::hdf5
