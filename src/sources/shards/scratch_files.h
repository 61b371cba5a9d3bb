// Unnamed files for unpacked shards, open until they are packed. If the process may not open enough files,
// their contents are concatenated in one. Used by shards. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/thread.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The location of an unpacked shard.
struct ScratchFile {
  std::shared_ptr<const File> file;  ///< shared by all shards in it
  std::uint64_t begin = 0;           ///< in the file
};

class ScratchFiles {
 public:
  /// For `files` files in `folder`. Raises the soft limit of open files if that suffices.
  ScratchFiles(Path folder, std::size_t files);

  /// Keeps the file, or appends its bytes to the common file and closes it. NoSpace if the disk is full.
  Result<ScratchFile> keep(File file);

 private:
  const Path folder_;
  const bool keeps_files_open_;
  Mutex mutex_;
  std::shared_ptr<File> common_ STOKER_GUARDED_BY(mutex_);  // shared with its readers
  std::uint64_t end_ STOKER_GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::sources
