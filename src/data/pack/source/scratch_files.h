// Files without names that shards are unpacked into, which stay open until they are packed. Where a process
// may not have so many open, their contents lie one behind another in one. Used by shards. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/status.h"
#include "base/thread.h"

namespace stoker::data {

/// What a shard was unpacked to.
struct ScratchFile {
  std::shared_ptr<const File> file;  ///< shared by all that lie in it
  std::uint64_t begin = 0;           ///< in the file
};

class ScratchFiles {
 public:
  /// For so many, in `folder`. Raises the soft limit of open files where that is enough.
  ScratchFiles(Path folder, std::size_t files);

  /// The file itself, or its bytes in the common one: then it is closed. NoSpace where the disk is full.
  Result<ScratchFile> keep(File file);

 private:
  const Path folder_;
  const bool are_apart_;
  Mutex mutex_;
  std::shared_ptr<File> common_ GUARDED_BY(mutex_);  // shared with those who read it
  std::uint64_t end_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::data
