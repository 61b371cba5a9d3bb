// What DVC's files say of data: `.dvc` files, and `dvc.lock` with the `dvc.yaml` whose pipeline it is. Bytes
// come from files that people merge by hand. Used by dvc.cc. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"
#include "data/pack/dvc/dvc.h"

namespace stoker::data {

/// Ends the hash of a folder.
inline constexpr std::string_view kDvcFolder = ".dir";

/// What is asked about.
struct DvcTarget {
  Path path;  ///< normal, from the folder of the file that is read: "images", "../data/images"
  bool is_folder = false;
};

/// What the text of a .dvc file says of the target; nothing where it speaks of something else, or has no MD5
/// of it yet. Corrupt, beginning with `subject`, for what is no .dvc file.
Result<std::optional<DvcFile>> read_dvc_file(std::string_view text, const std::string& subject,
                                             const DvcTarget& target);

/// The same of a dvc.lock. `pipeline` is the text of the dvc.yaml beside it, empty if there is none: it says
/// from where a stage's paths count.
Result<std::optional<DvcFile>> read_dvc_lock(std::string_view text, std::string_view pipeline,
                                             const std::string& subject, const DvcTarget& target);

}  // namespace stoker::data
