// `.dvc` files and `dvc.lock` (https://dvc.org), which say what version of some data belongs here: by MD5,
// size and number of files. What they say of what is packed is noted in the manifest, and compared with what
// is there. Used by pack, verify, info and check. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "format/manifest.h"

namespace stoker::data {

struct DvcFile {
  formats::SourceVersion version;
  /// Written before DVC 3: of text, lines that end as in Windows were hashed as in Unix.
  bool has_old_hashes = false;
  std::string stage;  ///< of the pipeline that makes it, as DVC's commands name it; empty for a .dvc file
};

/// What the .dvc file beside `data` ("images.dvc" beside "images") says of it, else a dvc.lock in its folder
/// or in one above, up to that of the repository; nothing where none speaks of it. Corrupt for one that
/// cannot be read.
Result<std::optional<DvcFile>> dvc_of(const Path& data);

enum class DvcDepth {
  sizes,  ///< how many files, and how large they are together: one look at each
  bytes,  ///< the MD5 of every file: reads everything
};

/// How data and a .dvc file compare.
struct DvcComparison {
  std::string difference;  ///< "12 files of 345 bytes, images.dvc says 13 of 360"; empty for none
  std::string
      ignored_by;  ///< a .dvcignore that leaves out files, which only DVC can tell: nothing was compared
};

/// Cancelled when `progress` says stop.
Result<DvcComparison> compare_with_dvc(const Path& data, const DvcFile& dvc, DvcDepth depth, int threads,
                                       Progress& progress);

/// What to do about a difference: "dvc checkout images.dvc, or dvc add images", "dvc checkout images, or dvc
/// commit prepare".
std::string dvc_cure(const Path& data, const DvcFile& dvc);

}  // namespace stoker::data
