// `.dvc` files and `dvc.lock` (https://dvc.org): the recorded version of data by MD5, size and number of
// files. The manifest records the version of a packed source, and commands compare data with it. Used by
// pack, verify, info and check. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "dataset/manifest.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

struct DvcFile {
  dataset::SourceVersion version;
  /// Written before DVC 3: text was hashed with Unix line ends.
  bool has_old_hashes = false;
  std::string stage;  ///< the pipeline stage with this output, in DVC's notation; empty for a .dvc file
};

/// The version of `data` in its .dvc file ("images.dvc" for "images"), else in a dvc.lock of its folder or of
/// a parent inside the repository; nullopt without either. Corrupt for an unreadable file.
Result<std::optional<DvcFile>> find_dvc_file(const Path& data);

enum class DvcDepth {
  sizes,  ///< number and total size of the files: one stat call each
  bytes,  ///< the MD5 of every file: reads all bytes
};

/// Result of comparing data with its recorded version.
struct DvcComparison {
  std::string difference;  ///< "12 files of 345 bytes, images.dvc records 13 of 360"; empty if equal
  std::string ignored_by;  ///< a .dvcignore that excludes files: only DVC can apply it, nothing was compared
};

/// Cancelled on stop_requested().
Result<DvcComparison> compare_with_dvc(const Path& data, const DvcFile& dvc, DvcDepth depth, int threads,
                                       Progress& progress);

/// How to resolve a difference: "dvc checkout images.dvc, or dvc add images", "dvc checkout images, or dvc
/// commit prepare".
std::string dvc_cure(const Path& data, const DvcFile& dvc);

}  // namespace stoker::pack
