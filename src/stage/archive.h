// An archive that can be read at any place by several threads at once; a compressed one is expanded to a file
// without a name first. Used by unpack.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "stage/listing.h"

namespace stoker::stage {

/// Gets the bytes of a member piece by piece.
using Piece = std::function<Status(std::span<const std::byte>)>;

class Archive {
 public:
  virtual ~Archive() = default;
  /// All members with clean names, in the order of the archive.
  virtual Result<std::vector<Entry>> list() = 0;
  /// The bytes of a file, a zip's symbolic link included. Callable from several threads.
  virtual Status read(const Entry& entry, const Piece& piece) const = 0;
};

/// Opens by its first bytes, whatever its name is. `scratch`: the folder of the file for what is expanded.
Result<std::unique_ptr<Archive>> open_archive(const Path& path, const Path& scratch, Progress& progress);

}  // namespace stoker::stage
