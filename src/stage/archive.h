// An archive with random access from several threads; a compressed one is first decompressed to an unnamed
// file. Used by unpack.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "stage/listing.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Receives the bytes of a member piece by piece.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

class EntrySource {
 public:
  virtual ~EntrySource() = default;
  /// All members with cleaned names, in archive order.
  virtual Result<std::vector<ArchiveEntry>> list() = 0;
  /// The bytes of a file, or the target of a zip's symbolic link. May be called from several threads.
  virtual Status read(const ArchiveEntry& entry, const ByteSink& piece) const = 0;
};

/// Invalid if the path exists and is not a file.
Status check_is_file(const Path& path);

/// Opens an archive and detects its format from its first bytes. `scratch`: folder for the decompressed file.
Result<std::unique_ptr<EntrySource>> open_archive(const Path& path, const Path& scratch, Progress& progress);

}  // namespace stoker::stage
