// The child's side of describe.h: the chunks of a dataset and what packed them. Used only inside this folder.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "base/text.h"
#include "format/chunks/box.h"
#include "format/hdf5/api.h"

namespace stoker::formats::hdf5 {

/// The file that a dataset lies in. What `path` and `subject` name must outlive it.
struct AskedFile {
  const Path& path;
  const std::string& subject;   ///< begins every error text: file and dataset
  std::uint64_t userblock = 0;  ///< bytes of somebody else's at its beginning
};

/// Adds `filters`, `chunks` and `places` of a dataset in chunks. Invalid, beginning with the subject, for
/// more chunks than are read.
Status ask_chunks(const Api& h5, const AskedFile& file, Id dataset, const Extents& shape,
                  nlohmann::json& into);

}  // namespace stoker::formats::hdf5
