// A folder whose contents appear in its parent all at once, or not at all. Used by unpack and copy.
#pragma once

#include "base/file.h"
#include "base/status.h"

namespace stoker::stage {

/// Made inside the folder it is for, removed with all in it unless it is published.
class Pending {
 public:
  static Result<Pending> create(const Path& folder);
  Pending(Pending&& other) noexcept;
  Pending& operator=(Pending&&) = delete;
  ~Pending();

  const Path& path() const { return path_; }
  /// Renames what lies at the top of it into the folder it was made for. Exists, and nothing is moved, when
  /// something of that name is there already.
  Status publish() &&;

 private:
  Pending(Path folder, Path path) : folder_(std::move(folder)), path_(std::move(path)) {}

  Path folder_;
  Path path_;
};

}  // namespace stoker::stage
