// Parses `.dvc` files, and `dvc.lock` with its `dvc.yaml`. Inputs may be damaged by manual merges. Used by
// dvc.cc. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "pack/dvc/dvc.h"
#include "stoker/status.h"

namespace stoker::pack {

/// Suffix of the hash of a folder.
inline constexpr std::string_view kDvcFolder = ".dir";

/// The data to look up.
struct DvcTarget {
  Path path;  ///< normalized, relative to the folder of the parsed file: "images", "../data/images"
  bool is_folder = false;
};

/// The version of the target in a .dvc file; nullopt if the file is about different data or has no MD5 yet.
/// Corrupt, beginning with `subject`, if it is not a .dvc file.
Result<std::optional<DvcFile>> read_dvc_file(std::string_view text, const std::string& subject,
                                             const DvcTarget& target);

/// The version of the target in a dvc.lock. `pipeline` is the text of the dvc.yaml next to it, or empty: it
/// defines the working folders of stages.
Result<std::optional<DvcFile>> read_dvc_lock(std::string_view text, std::string_view pipeline,
                                             const std::string& subject, const DvcTarget& target);

}  // namespace stoker::pack
