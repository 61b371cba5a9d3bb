// A folder whose contents appear in its parent all at once, or not at all. Used by unpack and copy.
#pragma once

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Created inside the target folder, and deleted with its contents unless it is published.
class PendingFolder {
 public:
  static Result<PendingFolder> create(const Path& folder);
  PendingFolder(PendingFolder&& other) noexcept;
  PendingFolder& operator=(PendingFolder&&) = delete;
  ~PendingFolder();

  const Path& path() const { return path_; }
  /// Moves its top-level entries into the target folder. Exists, and nothing is moved, if an entry of the
  /// same name exists there.
  Status publish() &&;

 private:
  PendingFolder(Path folder, Path path) : folder_(std::move(folder)), path_(std::move(path)) {}

  Path folder_;
  Path path_;
};

}  // namespace stoker::stage
