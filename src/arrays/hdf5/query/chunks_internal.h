// The child's side of describe.h: the chunks and filters of a dataset. Used only inside this folder.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "arrays/hdf5/api.h"
#include "codec/chunks/box.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::arrays::hdf5 {

/// The file of a dataset. `path` and `subject` must outlive it.
struct FileContext {
  const Path& path;
  const std::string& subject;   ///< begins every error text: file and dataset
  std::uint64_t userblock = 0;  ///< bytes before the HDF5 data
};

/// Adds `filters`, `chunks` and `places` of a chunked dataset. Invalid, beginning with the subject, for too
/// many chunks.
Status query_chunks(const Api& h5, const FileContext& file, Id dataset, const codec::Extents& shape,
                    nlohmann::json& into);

}  // namespace stoker::arrays::hdf5
