// Files that are packed as a whole, by gzip or zstd: nothing in them can be read by itself, so they are
// expanded once into a file without a name. Used by unpack and by pack. Thread-safe: no state.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "format/expand.h"

namespace stoker::formats {

/// By the file's first bytes, whatever it is called.
Result<Packing> packing_of(const File& file);

/// A file in `folder` that has no name: nothing is left of it, whatever ends us.
Result<File> nameless_file(const Path& folder);

/// Where expanded bytes go.
struct Scratch {
  Path folder;
  std::optional<ByteCount> most;  ///< none: nearly all that is free there
};

/// The file itself if it is not packed; else one without a name in the scratch folder that holds what it
/// expands to. Corrupt as ExpandingReader::next(); NoSpace before the disk is full, however much a few bytes
/// may stand for. Blocks; Cancelled when `progress` says stop.
Result<File> expanded(File file, const Scratch& scratch, Progress& progress);

}  // namespace stoker::formats
